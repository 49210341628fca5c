"""`.pt2` files that unpack to more than allowed, and damaged ones: each raises an error, at little cost."""

import json
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.export import export, save

import trivium
from tests.importers.pytorch.archives import edited, members, replaced, write
from tests.importers.pytorch.programs import (
    CONSTANTS,
    MODEL,
    WEIGHTS,
    graph_of,
    node_of,
    refuse,
)
from tests.limits import bounded

pytestmark = pytest.mark.torch


def test_compressed_members_are_refused(genuine: Path, tmp_path: Path) -> None:
    content = {**members(genuine), "model/data/weights/weight_0": bytes(1 << 26)}
    path = write(tmp_path / "bomb.pt2", content, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    refuse(path, "is compressed, expected one that is stored uncompressed")


def test_a_compressed_file_of_tensors_is_refused(genuine: Path, tmp_path: Path) -> None:
    inner = write(tmp_path / "inner.pt", {"archive/data.pkl": bytes(1 << 26)}, zipfile.ZIP_DEFLATED).read_bytes()
    refuse(edited(tmp_path / "bomb.pt2", genuine, {"data/weights/model.pt": inner}), "is compressed")


def test_sizes_that_the_archive_does_not_have(genuine: Path, tmp_path: Path) -> None:
    content = bytearray(genuine.read_bytes())
    entry = content.index(b"weight_0", content.index(b"PK\x01\x02")) - len("model/data/weights/") - 46
    content[entry + 20 : entry + 28] = struct.pack("<II", 1 << 31, 1 << 31)
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    refuse(path, "unpacks to|is damaged|cannot read")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_are_there_twice(genuine: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(genuine.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("model/data/weights/weight_0", bytes(24))
    refuse(path, "'model/data/weights/weight_0' occurs twice")


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


def test_tensors_that_represent_too_many_elements(genuine: Path, tmp_path: Path) -> None:
    def spread(entries: Any) -> None:
        meta = entries["config"]["linear.weight"]["tensor_meta"]
        meta.update(sizes=[{"as_int": 1 << 40}, {"as_int": 1}], strides=[{"as_int": 0}, {"as_int": 0}])

    refuse(edited(tmp_path / "model.pt2", genuine, {WEIGHTS: spread}), "represents 4398046511104 bytes")


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
    """According to the file, the input has many elements, and its sum, which is split, has few."""
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
    refuse(edited(tmp_path / "model.pt2", genuine, {MODEL: deep}), "is not JSON, or is damaged")


@pytest.mark.parametrize("value", [[], {}, 0, None, "graph", {"graph_module": 3}])
def test_json_that_is_not_a_program(genuine: Path, tmp_path: Path, value: Any) -> None:
    path = edited(tmp_path / "model.pt2", genuine, {MODEL: json.dumps(value).encode()})
    refuse(path, "the program is damaged")


def scrambled(data: Any, generator: random.Random) -> Any:
    """Returns JSON with one value replaced by another, or left out."""
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
    """Mutations raise an Error, or are still programs."""
    generator = random.Random(0)
    accepted = 0
    for _ in range(40):
        part = generator.choice([MODEL, MODEL, WEIGHTS, CONSTANTS])
        path = edited(tmp_path / "model.pt2", tiny, {part: lambda data: scrambled(data, generator)})
        try:
            with bounded():
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
            with bounded():
                trivium.load(path)
        except trivium.Error:
            continue
