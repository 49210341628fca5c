"""`.pt2` files from others: files that torch.export saves are read without PyTorch's own loader, and no path through a
file leads to code."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.export import export, save

import trivium
from tests.importers.pytorch.archives import command, edited, members, payload, replaced, write
from tests.importers.pytorch.programs import (
    ARGUMENTS,
    CONSTANTS,
    KEYWORDS,
    MODEL,
    WEIGHTS,
    Refused,
    graph_of,
    node_of,
    refuse,
)

pytestmark = pytest.mark.torch


# Supported contents


def test_a_program_is_what_pytorch_reads(genuine: Path, loaded: trivium.Module) -> None:
    program = torch.export.load(genuine)
    assert str(loaded) == str(trivium.from_torch(program, shapes={"x": tuple(ARGUMENTS[0].shape)}))
    expected = torch.export.load(genuine).module()(*ARGUMENTS, **KEYWORDS)
    inputs = [x.numpy() for x in (ARGUMENTS[0], *ARGUMENTS[1], KEYWORDS["shift"])]
    wanted = [expected["y"], *expected["rest"][:2], expected["row"]]
    for mine, theirs in zip(trivium.evaluate(loaded, *inputs), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-6, atol=1e-6)


def test_users_lines_stay(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(Refused(), (torch.eye(3),)), tmp_path / "refused.pt2")
    with pytest.raises(trivium.Error, match=r"(?s)programs\.py:\d+ in forward|programs\.py:\d+, forward"):
        trivium.load(tmp_path / "refused.pt2")


class Kinds(nn.Module):
    """Constants of many types, some of which share the memory of others."""

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
    """An archive whose tensors are in files of `torch.save`."""
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
    with pytest.raises(trivium.Error):  # it is not a tuple, but its code has run
        trivium.load(path, trust=True)
    assert marker.exists()


def pickled(marker: Path) -> bytes:
    """A file of `torch.save` whose pickle creates a file."""
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
    """Structures name modules that PyTorch would import: one is beside the file."""
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
        *(
            "torch.ops.higher_order.invoke_quant_packed",
            "torch.ops.inductor._alloc_from_pool.default",
            "_operator.methodcaller",
        ),
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
