"""Programs are written as artifacts and read again: they are equal, in every version that can express them, and the
bytes are always the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.bytecode.versions import Version
from trivium.ir.equality import difference
from trivium.ir.func import Function, Module
from trivium.ir.text import parse, print_module
from trivium.ir.types import F32, I1, tensor

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = ("0.9.0", "0.11.0", "0.13.0", "0.14.0", "0.15.0", "1.0.0", "1.6.0", "1.13.7", "1.20.0")


def program(name: str = "program") -> Module:
    return parse((FIXTURES / f"{name}.mlir").read_text())


LATER = {"asynchronous": "1.15.0", "chlo": "0.19.0", "mesh": "1.16.0", "quantized": "1.11.0", "shardy": "1.11.0"}
"""Programs, and the version that they need."""


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *((name, version) for name in ("program", "processes") for version in VERSIONS),
        *((name, version) for name, since in LATER.items() for version in (since, "1.20.0")),
    ],
)
def test_round_trip(name, version):
    data = serialize(program(name), version)
    module = deserialize(data)
    assert difference(module, program(name)) == ""
    module.verify()
    assert serialize(module, version) == data


def test_locations_survive():
    text = """
    module {
      func.func @main(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
        %0 = stablehlo.abs %arg0 : tensor<f32> loc(fused<"why">["a.py":1:2, callsite("f"("b.py":3:4) at unknown)])
        %1 = stablehlo.abs %0 : tensor<f32> loc("a.py":1:2 to :9)
        %2 = stablehlo.abs %1 : tensor<f32> loc("a.py":1:2 to 3:4)
        return %2 : tensor<f32> loc(unknown)
      } loc("c.py":5:6)
    } loc("m")"""
    module = parse(text)
    printed = print_module(module, locations=True)
    assert print_module(deserialize(serialize(module, "1.9.0")), locations=True) == printed
    # Readers of older versions do not know ranges.
    older = parse(text.replace(" to :9", "").replace(" to 3:4", ""))
    assert print_module(deserialize(serialize(module, "1.8.0")), locations=True) == print_module(older, locations=True)


def test_attributes_of_other_dialects_are_kept():
    text = """
    module attributes {foo.mesh = #sdy.mesh<["x"=2]>} {
      func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
        return %x : tensor<4xf32>
      }
    }"""
    data = serialize(parse(text))
    assert b"StableHLO_v1.11.0" in data
    assert difference(deserialize(data), parse(text)) == ""


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.mlirbc")), ids=lambda path: path.stem)
def test_files_of_earlier_times_are_read(path):
    """Files that an earlier Trivium wrote (MLIR wrote the `plain` ones). They are never rewritten."""
    module = trivium.load(path)
    module.verify()
    assert difference(module, program(path.stem.partition("-")[0])) == ""


@pytest.mark.parametrize("name", ["program", "processes", *LATER])
def test_every_kind_of_program_has_files(name):
    """Each has a file of the lowest version that can express it, and one of the version that was the newest when the
    file was written."""
    versions = {path.stem.partition("-")[2] for path in FIXTURES.glob(f"{name}-*.mlirbc")}
    lowest = max(LATER.get(name, "1.0.0"), "1.0.0", key=Version.of)
    assert versions >= {lowest, "1.20.0"}


def test_equal_elements_give_equal_bytes():
    """The bytes of a tensor depend on its elements, not on how they are stored."""

    def bytes_of(array: np.ndarray) -> bytes:
        constant = ops.Constant(DenseElements(array))
        return serialize(Module.build(functions=[Function.build("main", [], lambda builder: builder.add(constant))]))

    assert bytes_of(np.ones((3, 4), np.float32)) == bytes_of(np.broadcast_to(np.float32(1), (3, 4)))
    assert bytes_of(np.ones((3, 4), np.bool_)) == bytes_of(np.broadcast_to(np.bool_(True), (3, 4)))
    assert bytes_of(np.arange(12.0).reshape(3, 4).T) == bytes_of(np.arange(12.0).reshape(3, 4).T.copy())
    assert bytes_of(np.zeros(3)) != bytes_of(-np.zeros(3))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 16, 100])
@pytest.mark.parametrize("fill", [None, False, True])
def test_booleans(size, fill):
    """Eight booleans are packed in a byte. The byte of a splat must not be mistaken for eight of them."""
    array = np.arange(size) % 3 == 1 if fill is None else np.full(size, fill)
    function = Function.build("main", [], lambda builder: builder.add(ops.Constant(DenseElements(array))))
    module = deserialize(serialize(Module.build(functions=[function])))
    constant = module.main.body.block.first
    assert constant.value == DenseElements(array, tensor(size, of=I1))


def test_large_tensors_stay_in_the_file(tmp_path):
    array = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    function = Function.build("main", [], lambda builder: builder.add(ops.Constant(DenseElements(array))))
    Module.build(functions=[function]).save(tmp_path / "large.mlirbc")
    data = (tmp_path / "large.mlirbc").read_bytes()
    held = deserialize(data).main.body.block.first.value.array
    assert np.shares_memory(held, np.frombuffer(data, np.uint8))
    loaded = trivium.load(tmp_path / "large.mlirbc").main.body.block.first.value
    assert loaded == DenseElements(array, tensor(100_000, of=F32))
    assert not loaded.array.flags.writeable


def test_deep_programs():
    """Neither the length of a program nor the nesting of its regions leads to recursion."""
    lines = ["func.func @main(%x0: tensor<f32>) -> tensor<f32> {"]
    lines += [f"%x{index + 1} = stablehlo.negate %x{index} : tensor<f32>" for index in range(3000)]
    module = parse("\n".join([*lines, "return %x3000 : tensor<f32> }"]))
    assert difference(deserialize(serialize(module)), module) == ""


HASHES = """
import hashlib, pathlib, sys
from trivium.ir.bytecode import serialize
from trivium.ir.text import parse
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.mlir")):
    print(path.stem, hashlib.sha256(serialize(parse(path.read_text(), path.name))).hexdigest())
"""


def test_the_same_bytes_in_every_process():
    """No order depends on hashes, which differ in every Python process."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", HASHES, FIXTURES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert outputs[0].count(b"\n") == len(list(FIXTURES.glob("*.mlir")))
    assert outputs[0] == outputs[1] == outputs[2]
