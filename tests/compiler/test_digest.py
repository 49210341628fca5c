"""Digests of modules: equal for equal programs, regardless of the names of values and of locations, and different for
different programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.ir.ops.records import collect
from trivium.compiler import digest
from trivium.compiler.digest import module_digest, structure_digest
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.func import Module
from trivium.ir.text import parse
from trivium.ir.types import tensor

ROOT = Path(__file__).parents[2]
TEXT = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""

SAME = {
    "names": TEXT.replace("%x", "%left").replace("%0", "%difference"),
    "locations": TEXT.replace("%x, %y : tensor<4xf32>\n", '%x, %y : tensor<4xf32> loc("model.py":3:1)\n'),
    "generic": TEXT.replace(
        "stablehlo.subtract %x, %y : tensor<4xf32>",
        '"stablehlo.subtract"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
    ),
}
OTHERS = {
    "op": TEXT.replace("subtract", "add"),
    "operands": TEXT.replace("%x, %y :", "%y, %x :"),
    "type": TEXT.replace("4x", "5x"),
    "element type": TEXT.replace("xf32", "xf16"),
    "function": TEXT.replace("@main", "@other"),
    "argument": TEXT.replace("%y: tensor<4xf32>", '%y: tensor<4xf32> {trivium.name = "y"}'),
    "result": TEXT.replace("return %0", "return %x"),
}


def whole(module: Module) -> bytes:
    return module_digest(module).whole


@pytest.mark.parametrize("name", SAME)
def test_the_same_program(name: str) -> None:
    assert SAME[name] != TEXT
    assert whole(parse(SAME[name])) == whole(parse(TEXT))


@pytest.mark.parametrize("name", OTHERS)
def test_another_program(name: str) -> None:
    assert OTHERS[name] != TEXT
    assert whole(parse(OTHERS[name])) != whole(parse(TEXT))


def with_constant(elements: DenseElements) -> Module:
    return program_of([], lambda builder: builder.add(ops.Constant(elements)))


NUMBERS = np.random.default_rng(0).standard_normal(1000).astype(np.float32)


def changed(array: np.ndarray, place: int) -> np.ndarray:
    copy = array.copy()
    copy.view(np.uint32)[place] ^= 1
    return copy


def test_one_bit_of_a_constant() -> None:
    before = whole(with_constant(DenseElements(NUMBERS)))
    assert whole(with_constant(DenseElements(NUMBERS.copy()))) == before
    others = {whole(with_constant(DenseElements(changed(NUMBERS, place)))) for place in (0, 517, 999)}
    assert len(others | {before}) == 4
    small = NUMBERS[:5].copy()
    assert whole(with_constant(DenseElements(small))) != whole(with_constant(DenseElements(changed(small, 3))))


def test_constants_are_distinguished_by_content_not_by_layout_or_name() -> None:
    square = NUMBERS[:900].reshape(30, 30)
    assert whole(with_constant(DenseElements(square.T))) == whole(
        with_constant(DenseElements(np.ascontiguousarray(square.T)))
    )
    for array in (NUMBERS, NUMBERS[:5]):
        named = with_constant(DenseElements(array, resource="weights"))
        assert whole(named) == whole(with_constant(DenseElements(array)))
    assert whole(with_constant(DenseElements(NUMBERS[:5], resource="w"))) != whole(
        with_constant(DenseElements(NUMBERS[5:10], resource="w"))
    )


def test_the_structure_is_all_but_large_constants() -> None:
    one, other = (with_constant(DenseElements(array)) for array in (NUMBERS, changed(NUMBERS, 5)))
    assert structure_digest(one) == structure_digest(other) == module_digest(one).structure
    assert structure_digest(one) != structure_digest(with_constant(DenseElements(NUMBERS[:999])))


def test_large_constants_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are hashed on several threads; every piece counts, and so does their order."""
    monkeypatch.setattr(digest, "PIECE", 1024)
    monkeypatch.setattr(digest, "LARGE", 512)
    before = whole(with_constant(DenseElements(NUMBERS)))
    assert whole(with_constant(DenseElements(NUMBERS))) == before
    swapped = np.concatenate([NUMBERS[256:512], NUMBERS[:256], NUMBERS[512:]])
    others = [swapped, changed(NUMBERS, 300), changed(NUMBERS, 999)]
    assert before not in {whole(with_constant(DenseElements(array))) for array in others}


def test_a_constant_of_equal_elements_is_not_expanded() -> None:
    enormous = DenseElements.splat(1.0, tensor(1 << 40, of=np.float32))
    assert whole(with_constant(enormous))


def test_programs_are_distinguished_as_their_texts_are() -> None:
    """Covers everything that the records of ops contain: attributes, regions, types."""
    modules = [record.module() for record in collect()]
    digests = {module.text(elide=False): whole(module) for module in modules}
    assert len(set(digests.values())) == len(digests)


def test_digests_at_the_exit_of_the_interpreter() -> None:
    """The interpreter no longer starts threads then."""
    program = """
import atexit, numpy as np
from tests.compiler.test_digest import whole, with_constant
from trivium.ir.attributes import DenseElements

def show():
    print(whole(with_constant(DenseElements(np.arange(1 << 20, dtype=np.float32)))).hex())

show()
atexit.register(show)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    first, second = done.stdout.split()
    assert first == second
