"""Text for readers omits large constants, in MLIR's own notation; text for programs contains all of them."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.ir.bytecode.mlir import context, parsed
from trivium.ir.attributes import DenseElements, Dictionary
from trivium.ir.errors import ParseError
from trivium.ir.func import Function, Module
from trivium.ir.ops import Constant
from trivium.ir.text import parse, print_module

LEFT_OUT = "dense_resource<__elided__> : tensor<65xi32>"


def constants(*arrays: DenseElements | np.ndarray) -> Module:
    elements = [array if isinstance(array, DenseElements) else DenseElements(array) for array in arrays]
    return Module.build(functions=[Function.build("main", [], lambda b: [b.add(Constant(x)) for x in elements])])


def test_large_constants_are_left_out():
    few, many = np.arange(64, dtype=np.int32), np.arange(65, dtype=np.int32)
    module = constants(few, many)
    for text in (str(module), f"{module}", module.text()):
        assert f"stablehlo.constant {LEFT_OUT}\n" in text
        assert "dense<[0, 1, 2, 3," in text
    assert "__elided__" not in module.text(elide=False)
    assert module.text(elide=False) == print_module(module)


def test_splats_are_written():
    """Whether or not the array is stored as a splat."""
    text = str(constants(np.full((9, 9), 1.5, np.float32), np.broadcast_to(np.int8(3), (1000, 1000))))
    assert "dense<1.500000e+00> : tensor<9x9xf32>" in text
    assert "dense<3> : tensor<1000x1000xi8>" in text


def test_attributes_and_resources_are_left_out():
    many = np.arange(65, dtype=np.int32)
    module = constants(DenseElements(many, resource="weights"))
    module.extra["a.b"] = Dictionary({"c": (DenseElements(many),)})
    assert str(module).count(LEFT_OUT) == 2
    assert "weights" not in str(module)
    assert 'weights: "0x04000000' in module.text(elide=False)


def test_reading_it_again_is_refused():
    with pytest.raises(ParseError, match="the elements were left out when the text was printed, expected all of them"):
        parse(str(constants(np.arange(65, dtype=np.int32))))


@pytest.mark.jax
def test_mlir_leaves_out_the_same():
    """MLIR's own printer, with the corresponding option, writes the same."""
    module = constants(np.arange(65, dtype=np.int32), np.arange(64, dtype=np.int32), np.ones(100, np.int32))
    context()
    theirs = parsed(module.text(elide=False)).operation.get_asm(large_elements_limit=64)
    assert theirs.split() == str(module).split()


def test_save_writes_all(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal((300, 70)).astype(np.float32),
        rng.integers(0, 2, 5000).astype(bool),
        rng.standard_normal((40, 50)).astype(np.float32).T,  # not contiguous
        np.arange(101, dtype=np.uint64),
        rng.standard_normal(3000) + 1j,
    ]
    module = constants(*arrays, DenseElements(arrays[0], resource="weights"))
    module.save(tmp_path / "all.mlir")
    assert (tmp_path / "all.mlir").read_text() == module.text(elide=False, locations=True)
    for path in (tmp_path / "all.mlir", tmp_path / "all.mlirbc"):
        module.save(path)
        results = trivium.evaluate(trivium.load(path))
        for result, array in zip(results, [*arrays, arrays[0]], strict=True):
            np.testing.assert_array_equal(result, array)


def test_a_string_like_a_mark_is_kept():
    """No string of a program is mistaken for the marker of omitted elements."""
    module = constants(np.arange(5000))
    module.extra["a.b"] = "\0" * 3
    assert parse(module.text(elide=False)).extra["a.b"] == "\0" * 3


def test_notebooks_show_the_program():
    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    module, printer = constants(np.arange(65, dtype=np.int32)), Printer()
    module._repr_pretty_(printer, cycle=False)
    assert printer.shown == str(module)


def test_equal_elements_have_equal_hashes():
    """The hash does not depend on how elements are stored. Elements that differ only where the hash does not look have
    equal hashes, but are different."""
    ones = np.ones((50, 50), np.float32)
    dense, splat = DenseElements(ones.copy()), DenseElements(np.broadcast_to(np.float32(1), (50, 50)))
    assert dense == splat
    assert hash(dense) == hash(splat)
    scalar, empty = DenseElements(np.float32(1)), DenseElements(np.zeros((0, 3), np.float32))
    assert hash(scalar) == hash(DenseElements(np.float32(1)))
    assert hash(empty) == hash(DenseElements(np.zeros((0, 3), np.float32)))
    other = ones.copy()
    other[20, 3] = 2
    assert hash(DenseElements(other)) == hash(dense)
    assert DenseElements(other) != dense
