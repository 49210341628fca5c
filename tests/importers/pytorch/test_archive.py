"""`.pt2` files from others: what torch.export saves is read without PyTorch's own loader, and no route in a file leads
to code."""

import io
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.export import Dim, export, save

import trivium
from tests.importers.pytorch.archives import command, edited, members, payload, replaced, write

pytestmark = pytest.mark.torch

MODEL, WEIGHTS, CONSTANTS = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)


class Small(nn.Module):
    """With a parameter, a view of it, a buffer, a constant, arithmetic on sizes, branches and a structure."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.row = nn.Parameter(self.linear.weight[1])
        self.register_buffer("offset", torch.tensor([1.0, 2.0]))
        self.scale = torch.tensor([0.5, 2.0])

    def forward(self, x, pair, *, shift=None, times=2):
        with torch.no_grad():
            y = self.linear(x)
        y = torch.cond(y.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,))
        z = x[1:].reshape(-1) * (x.shape[0] + 1) ** 2
        return {"y": y * self.scale + self.offset, "rest": [z + shift, pair[0] * times, None], "row": self.row + 0}


ARGUMENTS = (torch.arange(12.0).reshape(4, 3) - 5, [torch.ones(2), torch.zeros(1)])
KEYWORDS = {"shift": torch.tensor(3.0), "times": 3}


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved program of dynamic shape."""
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    shapes = {"x": {0: Dim("rows", min=3, max=50)}, "pair": [None, None], "shift": None, "times": None}
    save(export(Small(), ARGUMENTS, KEYWORDS, dynamic_shapes=shapes), path)
    return path


@pytest.fixture(scope="module")
def loaded(genuine: Path) -> trivium.Module:
    return trivium.load(genuine)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    save(export(nn.Linear(2, 2), (torch.ones(1, 2),)), path)
    return path


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that is made if anything of a model is run."""
    return tmp_path / "it_ran"


def refuse(path: Path, message: str, marker: Path | None = None) -> None:
    with pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.load(path)
    assert marker is None or not marker.exists()


# What is read


def test_a_program_is_what_pytorch_reads(genuine: Path, loaded: trivium.Module) -> None:
    assert str(loaded) == str(trivium.load(genuine, trust=True))
    expected = torch.export.load(genuine).module()(*ARGUMENTS, **KEYWORDS)
    inputs = [x.numpy() for x in (ARGUMENTS[0], *ARGUMENTS[1], KEYWORDS["shift"])]
    wanted = [expected["y"], *expected["rest"][:2], expected["row"]]
    for mine, theirs in zip(trivium.evaluate(loaded, *inputs), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-6, atol=1e-6)


def test_users_lines_stay(genuine: Path) -> None:
    def unknown(program: Any) -> None:
        node = next(x for x in program["graph_module"]["graph"]["nodes"] if x["target"].endswith("reshape.default"))
        node["target"] = "torch.ops.aten.nonzero.default"

    path = edited(genuine.parent / "unknown.pt2", genuine, {MODEL: unknown})
    with pytest.raises(trivium.Error, match=r"(?s)test_archive\.py:\d+ in forward|test_archive\.py:\d+, forward"):
        trivium.load(path)


class Kinds(nn.Module):
    """Constants of many types, some of which lie in others."""

    def __init__(self) -> None:
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6)
        self.register_buffer("base", base)
        self.register_buffer("part", base[1:3, ::2])
        self.register_buffer("turned", base.t())
        self.register_buffer("wide", torch.ones(1).expand(3))
        self.register_buffer("empty", torch.ones(0, 3))
        self.register_buffer("brief", torch.tensor([1.5, -2], dtype=torch.bfloat16), persistent=False)
        self.register_buffer("whole", torch.tensor([[1, -2]], dtype=torch.int8))
        self.register_buffer("truth", torch.tensor(True))
        self.register_buffer("pair", torch.tensor([1 + 2j]))

    def forward(self, x):
        return [
            getattr(self, name) + 0 * x for name in ("base", "part", "turned", "wide", "empty", "brief", "whole")
        ], (
            self.truth & True,
            self.pair * 2,
        )


def test_tensors_of_every_kind(tmp_path: Path) -> None:
    model, x = Kinds(), torch.tensor(1.0)
    save(export(model, (x,)), tmp_path / "kinds.pt2")
    found = trivium.evaluate(trivium.load(tmp_path / "kinds.pt2"), x.numpy())
    expected, more = model(x)
    for mine, theirs in zip(found, [*expected, *more], strict=True):
        theirs = theirs.float() if theirs.dtype is torch.bfloat16 else theirs
        np.testing.assert_array_equal(mine.astype(theirs.numpy().dtype), theirs.numpy())


@pytest.mark.parametrize("layout", ["2.7", "2.9"])
def test_older_archives(genuine: Path, loaded: trivium.Module, tmp_path: Path, layout: str) -> None:
    """Whose tensors are in files of `torch.save`."""
    program = torch.export.load(genuine)
    state, constants = saved(dict(program.state_dict)), saved(dict(program.constants))
    content = members(genuine)
    if layout == "2.7":
        model = content[f"model/{MODEL}"]
        content = {"version": b"8.8", "serialized_exported_program.json": model}
        content |= {"serialized_state_dict.pt": state, "serialized_constants.pt": constants}
    else:
        content = {x: data for x, data in content.items() if "weight" not in x and "constants" not in x}
        content |= {"model/data/weights/model.pt": state, "model/data/constants/model.pt": constants}
    path = write(tmp_path / "older.pt2", content)
    assert str(trivium.load(path)) == str(loaded)


def saved(thing: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


# Pickles


def test_sample_inputs_are_not_read(tiny: Path, tmp_path: Path, marker: Path) -> None:
    path = edited(tmp_path / "model.pt2", tiny, {"data/sample_inputs/model.pt": pickled(marker)})
    assert str(trivium.load(path)) == str(trivium.load(tiny))
    assert not marker.exists()
    with pytest.raises(trivium.Error):  # it is no tuple, but what it runs has run
        trivium.load(path, trust=True)
    assert marker.exists()


def pickled(marker: Path) -> bytes:
    """A file of `torch.save` whose pickle makes a file."""
    content = {"archive/data.pkl": payload(marker), "archive/byteorder": b"little", "archive/version": b"3\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(("config", "member"), [(WEIGHTS, "weights/weight_9"), (CONSTANTS, "constants/tensor_9")])
def test_tensors_that_are_pickles_are_refused(
    genuine: Path, tmp_path: Path, marker: Path, config: str, member: str
) -> None:
    def use_pickle(entries: Any) -> None:
        next(iter(entries["config"].values())).update(use_pickle=True, path_name=member.partition("/")[2])

    path = edited(tmp_path / "model.pt2", genuine, {config: use_pickle, f"data/{member}": pickled(marker)})
    refuse(path, f"the member 'data/{member}' .* is a pickle, .*trust=True .--trust. allows it", marker)
    with pytest.raises(trivium.Error):
        trivium.load(path, trust=True)
    assert marker.exists()


@pytest.mark.parametrize("kind", ["custom_obj_0", "opaque_obj_0"])
def test_objects_among_the_constants_are_refused(genuine: Path, tmp_path: Path, marker: Path, kind: str) -> None:
    def be_object(entries: Any) -> None:
        next(iter(entries["config"].values())).update(path_name=kind, use_pickle=True, tensor_meta=None)

    changes = {CONSTANTS: be_object, f"data/constants/{kind}": payload(marker)}
    refuse(edited(tmp_path / "model.pt2", genuine, changes), f"{kind}.*is a pickle", marker)


@pytest.mark.parametrize("content", [pickled, payload], ids=["zip", "bare"])
@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_older_tensors_are_read_without_their_pickle(
    genuine: Path, tmp_path: Path, marker: Path, content: Callable[[Path], bytes], kind: str
) -> None:
    path = edited(tmp_path / "model.pt2", genuine, {f"data/{kind}/model.pt": content(marker)})
    refuse(path, f"{kind}/model.pt", marker)


def test_machine_code_is_not_loaded(tiny: Path, tmp_path: Path) -> None:
    library = {"data/aotinductor/model/library.so": b"\x7fELF"}
    assert str(trivium.load(edited(tmp_path / "model.pt2", tiny, library))) == str(trivium.load(tiny))
    path = edited(tmp_path / "only.pt2", tiny, {**library, MODEL: None})
    refuse(path, "holds machine code .data/aotinductor., which is not run, and no program")


# Code in the program


def graph_of(program: Any) -> Any:
    return program["graph_module"]["graph"]


def node_of(program: Any, op: str) -> Any:
    return next(node for node in graph_of(program)["nodes"] if op in node["target"])


def symbolic(program: Any, marker: Path) -> Any:
    return json.loads(json.dumps(program).replace("Symbol('s", f"{command(marker)} or Symbol('s"))


def guards(program: Any, marker: Path) -> None:
    program["guards_code"] = [command(marker)]
    program["range_constraints"][command(marker)] = {"min_val": 1, "max_val": 2}
    program["verifiers"].append("os.system")
    program["graph_module"]["metadata"]["custom"] = json.dumps({"x": command(marker)})


def words(program: Any, marker: Path) -> None:
    for node in graph_of(program)["nodes"]:
        trace = node["metadata"].get("stack_trace", "")
        hostile = f'File "x.py\n{command(marker)}", line 3, in f\n{command(marker)}\n{trace}'
        node["metadata"] = {
            "stack_trace": hostile,
            "source_fn_stack": f"x,torch.hub.{command(marker)}",
            "torch_fn": command(marker),
            "custom": json.dumps({"y": f"\n{command(marker)}"}),
            "nn_module_stack": f"x,{marker},torch.os",
        }


def modules_of_structures(program: Any, marker: Path) -> None:
    """Structures name modules that PyTorch would import: one beside the file."""
    (marker.parent / "hostile_module.py").write_text(command(marker))
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    keys = [{"__enum__": True, "fqn": "hostile_module:X", "name": "Y"}, 1]
    for name in ("in_spec", "out_spec"):
        protocol, structure = json.loads(signature[name])
        factory = {"default_factory_module": "hostile_module", "default_factory_name": "X", "dict_context": ["a"]}
        inner = {"type": "collections.defaultdict", "context": factory, "children_spec": [structure]}
        leafless = {"type": "builtins.dict", "context": json.dumps([]), "children_spec": []}
        outer = {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [inner, leafless]}
        signature[name] = json.dumps([protocol, outer])


def argument_names(program: Any, marker: Path) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = [f"x={command(marker)}"] * 4
    signature["in_spec"] = signature["in_spec"].replace("shift", f"shift={command(marker)}".replace("'", '\\\\\\"'))


@pytest.mark.parametrize("edit", [symbolic, guards, words, modules_of_structures, argument_names])
def test_text_that_is_not_needed_is_left_out(
    genuine: Path,
    loaded: trivium.Module,
    tmp_path: Path,
    marker: Path,
    edit: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = edited(tmp_path / "model.pt2", genuine, {MODEL: lambda program: edit(program, marker)})
    module = trivium.load(path)
    assert not marker.exists()
    assert module.main.function_type == loaded.main.function_type


@pytest.mark.parametrize(
    "target",
    [
        *("torch.os.system", "torch.serialization.pickle.loads", "torch.hub.load", "torch.ops.load_library"),
        *("torch.ops.aten.save.default", "torch.ops.aten.from_file.default", "torch.ops.aten._print.default"),
        *("torch.ops.aten.__class__.mro", "torch.ops.aten.linear.__init__", "torch.ops.higher_order.print"),
        *("torch.ops.prim.RaiseException.default", "torch.ops.debugprims.load_tensor.default", "torch.load"),
        *("torch.ops.higher_order.map_impl", "torch.ops.inductor._alloc_from_pool.default", "_operator.methodcaller"),
        *("_operator.attrgetter", "math.factorial", "#extension:op", "os.system", "", "torch.ops..x", "torch.ops"),
    ],
)
def test_only_operators_that_compute_are_called(genuine: Path, tmp_path: Path, marker: Path, target: str) -> None:
    def call(program: Any) -> None:
        node = node_of(program, "reshape.default")
        node["target"] = target
        node["inputs"] = [
            {"name": "", "arg": {"as_string": f"touch {marker}"}, "kind": 1},
            {"name": "filename", "arg": {"as_string": str(marker)}, "kind": 1},
        ]

    path = edited(tmp_path / "model.pt2", genuine, {MODEL: call})
    with pytest.raises(trivium.UnsupportedOpError, match="1 op has no rule"):
        trivium.load(path)
    assert not marker.exists()


def test_operators_as_arguments_are_refused(genuine: Path, tmp_path: Path, marker: Path) -> None:
    def give(program: Any) -> None:
        argument = {"as_operator": "torch.os.system"}
        node_of(program, "higher_order.cond")["inputs"].append({"name": "", "arg": argument, "kind": 1})

    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: give}), "an argument is a operator", marker)


@pytest.mark.parametrize("old", ["x", "linear", "add", "true_graph_0", "mul", "p_linear_weight", "shift", "reshape"])
@pytest.mark.parametrize("form", ["{name}={command}", "{name}\n{command}", "{name}; {command}", "lambda", ""])
def test_names_that_are_python(genuine: Path, tmp_path: Path, marker: Path, old: str, form: str) -> None:
    new = form.format(name=old, command=command(marker))
    program = json.loads(members(genuine)[f"model/{MODEL}"])
    if program == replaced(program, old, new):
        pytest.fail(f"the program has no name {old}")
    path = edited(tmp_path / "model.pt2", genuine, {MODEL: lambda program: replaced(program, old, new)})
    refuse(path, "the program is damaged", marker)


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a.__class__.b", "..", "a\\b", "__dict__", "forward", "training"])
def test_names_of_parameters(genuine: Path, tmp_path: Path, marker: Path, name: str) -> None:
    changes = {part: lambda data: replaced(data, "linear.weight", name) for part in (MODEL, WEIGHTS)}
    refuse(edited(tmp_path / "model.pt2", genuine, changes), "model.pt2|the program is damaged", marker)


def test_names_of_keywords(genuine: Path, tmp_path: Path, marker: Path) -> None:
    def name(program: Any) -> None:
        entry = node_of(program, "higher_order.cond")["inputs"][0]
        entry.update(name=f"pred={command(marker)}, x", kind=2)

    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: name}), "expected an identifier", marker)


# Archives that unpack to more than they may, and damaged ones


def test_compressed_members_are_refused(genuine: Path, tmp_path: Path) -> None:
    content = {**members(genuine), "model/data/weights/weight_0": bytes(1 << 26)}
    path = write(tmp_path / "bomb.pt2", content, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    refuse(path, "is compressed, expected one that is stored as it is")


def test_a_compressed_file_of_tensors_is_refused(genuine: Path, tmp_path: Path) -> None:
    inner = write(tmp_path / "inner.pt", {"archive/data.pkl": bytes(1 << 26)}, zipfile.ZIP_DEFLATED).read_bytes()
    refuse(edited(tmp_path / "bomb.pt2", genuine, {"data/weights/model.pt": inner}), "is compressed")


def test_sizes_that_the_archive_does_not_have(genuine: Path, tmp_path: Path) -> None:
    content = bytearray(genuine.read_bytes())
    entry = content.index(b"weight_0", content.index(b"PK\x01\x02")) - len("model/data/weights/") - 46
    content[entry + 20 : entry + 28] = struct.pack("<II", 1 << 31, 1 << 31)
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    tracemalloc.start()
    refuse(path, "unpacks to|is damaged|cannot read")
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_are_there_twice(genuine: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(genuine.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("model/data/weights/weight_0", bytes(24))
    refuse(path, "'model/data/weights/weight_0' is there twice")


@pytest.mark.parametrize("name", [MODEL, WEIGHTS, CONSTANTS, "data/weights/weight_0", "archive_format"])
@pytest.mark.parametrize("change", ["missing", "empty", "half"])
def test_members_that_are_missing_or_short(genuine: Path, tmp_path: Path, name: str, change: str) -> None:
    whole = members(genuine)[f"model/{name}"]
    short = {"missing": None, "empty": b"", "half": whole[: len(whole) // 2]}[change]
    refuse(edited(tmp_path / "model.pt2", genuine, {name: short}), "model.pt2")


@pytest.mark.parametrize("name", ["../../../weight_0", "/etc/passwd", "weight_0/../../x", "", "a\0b"])
def test_paths_lead_nowhere(genuine: Path, tmp_path: Path, name: str) -> None:
    def move(entries: Any) -> None:
        next(iter(entries["config"].values()))["path_name"] = name

    refuse(edited(tmp_path / "model.pt2", genuine, {WEIGHTS: move}), "is missing")


def test_other_formats(genuine: Path, tmp_path: Path) -> None:
    refuse(edited(tmp_path / "a.pt2", genuine, {"archive_format": b"pt3"}), "is not 'pt2'")
    refuse(edited(tmp_path / "b.pt2", genuine, {"archive_version": b"7"}), "expected b'0'")
    refuse(edited(tmp_path / "c.pt2", genuine, {"byteorder": b"big"}), "big-endian")

    def age(program: Any) -> None:
        program["schema_version"]["major"] = 99

    refuse(edited(tmp_path / "d.pt2", genuine, {MODEL: age}), "version 99 of torch.export's schema")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sizes", [{"as_int": 1000}, {"as_int": 1000}], "needs .* elements, has 6"),
        ("sizes", [{"as_int": -1}, {"as_int": 3}], "expected a size"),
        ("strides", [{"as_int": -3}, {"as_int": 1}], "expected a size"),
        ("strides", [{"as_int": 1 << 62}, {"as_int": 1 << 62}], "needs .* elements, has 6"),
        ("storage_offset", {"as_int": 7}, "needs .* elements, has 6"),
        ("sizes", [{"as_int": 1 << 63}, {"as_int": 1}], "expected a size"),
        ("sizes", [{"as_int": 2}], "strides"),
        ("dtype", 99, "KeyError"),
        ("layout", 1, "has layout 1"),
    ],
)
def test_tensors_beyond_their_bytes(genuine: Path, tmp_path: Path, field: str, value: Any, message: str) -> None:
    def change(entries: Any) -> None:
        entries["config"]["linear.weight"]["tensor_meta"][field] = value

    refuse(edited(tmp_path / "model.pt2", genuine, {WEIGHTS: change}), message)


def test_tensors_that_stand_for_too_much(genuine: Path, tmp_path: Path) -> None:
    def spread(entries: Any) -> None:
        meta = entries["config"]["linear.weight"]["tensor_meta"]
        meta.update(sizes=[{"as_int": 1 << 40}, {"as_int": 1}], strides=[{"as_int": 0}, {"as_int": 0}])

    refuse(edited(tmp_path / "model.pt2", genuine, {WEIGHTS: spread}), "stands for 4398046511104 bytes")


@pytest.mark.parametrize(
    ("op", "number", "message"),
    [
        ("_operator.pow", 10**9, "exponent"),
        ("_operator.lshift", 10**9, "shifts"),
        ("_operator.mul", 1 << 62, "64 b"),
    ],
)
def test_arithmetic_on_sizes_is_bounded(genuine: Path, tmp_path: Path, op: str, number: int, message: str) -> None:
    def compute(program: Any) -> None:
        node = node_of(program, "_operator.add")
        node["target"] = op
        node["inputs"][1]["arg"] = {"as_int": number}

    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: compute}), f"on sizes: .*{message}")


class Splits(nn.Module):
    def forward(self, x):
        y = x + 1
        return [*y.split(3), *y.chunk(4), *y.unbind(), *torch.tensor_split(y, 5), *x.split(4), *y.split(2, dim=-1)]


def test_splits_make_as_many_tensors_as_the_file_says(tmp_path: Path) -> None:
    x = torch.arange(7.0)
    save(export(Splits(), (x,)), tmp_path / "splits.pt2")
    module = trivium.load(tmp_path / "splits.pt2")
    assert str(module) == str(trivium.load(tmp_path / "splits.pt2", trust=True))
    for op, argument in (("split", "split_size"), ("chunk", "chunks"), ("unbind", ""), ("tensor_split", "sections")):

        def enlarge(program: Any, op: str = op, argument: str = argument) -> Any:
            for entry in node_of(program, f"aten.{op}.")["inputs"]:
                if entry["name"] == argument:
                    entry["arg"] = {"as_int": 1 if op == "split" else 10**9}
            return replaced(program, 7, 10**9)  # the only extent

        path = edited(tmp_path / "model.pt2", tmp_path / "splits.pt2", {MODEL: enlarge})
        refuse(path, "has . results, expected 1?[0-9]+")


class Sums(nn.Module):
    def forward(self, x):
        return (x + 1).split(3)


def test_operands_of_splits_are_as_the_file_says(tmp_path: Path) -> None:
    """The file says that the input has many elements, and the sum of it, which is split, has few."""
    save(export(Sums(), (torch.arange(7.0),)), tmp_path / "sums.pt2")

    def widen(program: Any) -> None:
        graph_of(program)["tensor_values"]["x"]["sizes"] = [{"as_int": 10**9}]

    path = edited(tmp_path / "model.pt2", tmp_path / "sums.pt2", {MODEL: widen})
    refuse(path, "is invalid for input of size 1000000000")


def test_sizes_that_do_not_fit_their_claims(genuine: Path, tmp_path: Path) -> None:
    def lie(program: Any) -> None:
        node = node_of(program, "_operator.add")
        node["inputs"][1]["arg"] = {"as_int": 7}

    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: lie}), "has 5, expected 11")


@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ('{"graph_module":', "}")])
def test_deep_json(genuine: Path, tmp_path: Path, open_: str, close: str) -> None:
    deep = (open_ * 200_000 + "0" + close * 200_000).encode()
    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: deep}), "is no JSON, or damaged")


@pytest.mark.parametrize("value", [[], {}, 0, None, "graph", {"graph_module": 3}])
def test_json_that_is_no_program(genuine: Path, tmp_path: Path, value: Any) -> None:
    path = edited(tmp_path / "model.pt2", genuine, {MODEL: json.dumps(value).encode()})
    refuse(path, "the program is damaged")


def scrambled(data: Any, generator: random.Random) -> Any:
    """JSON with one value exchanged for another, or left out."""
    places: list[tuple[Any, Any]] = []
    stack = [data]
    while stack:
        inner = stack.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        places += [(inner, key) for key in keys]
        stack += [inner[key] for key in keys]
    container, key = generator.choice(places)
    other, other_key = generator.choice(places)
    junk = generator.choice([other[other_key], None, 0, -1, 1 << 70, "", "x", [], {}, True, 1e300])
    if generator.random() < 0.2:
        del container[key]
    else:
        container[key] = json.loads(json.dumps(junk))
    return data


def test_scrambled_programs_give_errors(tiny: Path, tmp_path: Path) -> None:
    """Or are programs still."""
    generator = random.Random(0)
    accepted = 0
    for _ in range(40):
        part = generator.choice([MODEL, MODEL, WEIGHTS, CONSTANTS])
        path = edited(tmp_path / "model.pt2", tiny, {part: lambda data: scrambled(data, generator)})
        try:
            trivium.load(path)
            accepted += 1
        except trivium.Error:
            pass
    assert 0 < accepted < 40


def test_truncated_and_flipped_archives_give_errors(tiny: Path, tmp_path: Path) -> None:
    whole, generator = tiny.read_bytes(), random.Random(0)
    path = tmp_path / "model.pt2"
    for _ in range(24):
        content = bytearray(whole)
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(content if generator.random() < 0.5 else whole[: generator.randrange(len(whole))])
        try:
            trivium.load(path)
        except trivium.Error:
            continue
