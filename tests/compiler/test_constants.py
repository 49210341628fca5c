"""References from a program's constants to those of its module: which are found, and that they refer to the bytes that
the program reads."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.targets import TARGET
from trivium.compiler.artifact import ModuleConstant
from trivium.compiler.constants import References, constant_arrays, keep_constants
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Constant
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.types import F32, TensorType, tensor

ROWS = np.arange(300, dtype=np.float32).reshape(20, 15)


def module_of(array: np.ndarray, use) -> Module:
    """Returns a program that applies `use` to the constant `array` and adds the result to its argument."""

    def main(builder: Builder, x: Value) -> Value:
        builder.add(ops.Constant(np.float32(7)))
        return builder.add(ops.Add(x, use(builder, builder.add(ops.Constant(DenseElements(array))))))

    shape = use.shape if hasattr(use, "shape") else array.shape
    return Module.build(functions=[Function.build("main", [tensor(*shape, of=np.float32)], main)])


def found(module: Module) -> list[ModuleConstant | None]:
    """Returns the reference of each constant in the program, after comparing the bytes that it refers to."""
    references, arrays, listed = References(module), constant_arrays(module), []
    for value in lower(optimize(module), TARGET).values():
        if isinstance(value.storage, Constant):
            reference = references.find(value.storage)
            if reference is not None:
                dense = np.ascontiguousarray(arrays[reference.index]).tobytes()
                named = dense[reference.offset : reference.offset + reference.nbytes]
                assert named == value.storage.array.tobytes()
            listed.append(reference)
    return listed


def reshaped(builder: Builder, value: Value) -> Value:
    return builder.add(ops.Reshape(value, result=tensor(300, of=np.float32)))


def sliced(builder: Builder, value: Value) -> Value:
    return builder.add(ops.Slice(value, (4, 0), (10, 15), (1, 1)))


def doubled(builder: Builder, value: Value) -> Value:
    return builder.add(ops.Multiply(value, value))


reshaped.shape, sliced.shape = (300,), (6, 15)

CASES = {
    "itself": (ROWS, lambda b, x: x, [ModuleConstant(1, 0, 1200)]),
    "reshaped": (ROWS, reshaped, [ModuleConstant(1, 0, 1200)]),
    "rows": (ROWS, sliced, [ModuleConstant(1, 4 * 60, 6 * 60)]),
    "computed": (ROWS, doubled, [None]),
    "columns apart": (ROWS.T, lambda b, x: x, [ModuleConstant(1, 0, 1200)]),
    "backwards": (ROWS[::-1], lambda b, x: x, [ModuleConstant(1, 0, 1200)]),
    "every other": (ROWS[::2, 1:], lambda b, x: x, [ModuleConstant(1, 0, 560)]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_found(name: str) -> None:
    array, use, expected = CASES[name]
    assert found(module_of(array, use)) == expected


def test_constants_are_numbered_in_the_order_of_ops() -> None:
    first, second = constant_arrays(module_of(ROWS, lambda b, x: x))
    assert first == np.float32(7)
    assert second.shape == ROWS.shape


def test_equal_bytes_elsewhere_are_not_a_reference() -> None:
    references = References(module_of(ROWS, lambda b, x: x))
    assert references.find(Constant(ROWS.copy())) is None
    assert references.find(Constant(ROWS)) == ModuleConstant(1, 0, 1200)
    assert references.find(Constant(np.zeros((0, 4), np.float32))) is None
    longer = np.lib.stride_tricks.as_strided(ROWS.reshape(-1)[10:], (300,), (4,))
    assert references.find(Constant(longer)) is None


def test_constants_of_others_are_kept_as_they_are() -> None:
    theirs = ROWS.copy()
    module = module_of(theirs, lambda builder, x: x).clone()
    fixed = ROWS.copy()
    fixed.flags.writeable = False
    other = module_of(fixed, lambda builder, x: x)
    for each in (module, other):
        keep_constants(each)
    theirs[:] = 0
    np.testing.assert_array_equal(constant_arrays(module)[1], ROWS)
    assert np.shares_memory(constant_arrays(other)[1], fixed)
    assert not constant_arrays(module)[1].flags.writeable


def test_programs_for_all_sizes_have_the_same_constants() -> None:
    """Though weights may change between the calls for which they are compiled."""
    weights = ROWS.copy()

    def main(builder: Builder, x: Value) -> Value:
        rows = builder.add(ops.Constant(DenseElements(weights)))
        return builder.add(ops.DotGeneral(x, rows, ops.DotDimensionNumbers((), (), (1,), (0,))))

    run = trivium.compile(Module.build(functions=[Function.build("main", [TensorType((None, 20), F32)], main)]))
    for count in (2, 3, 4, 5):
        given = np.ones((count, 20), np.float32)
        np.testing.assert_allclose(run(given)[0], given @ ROWS)
        weights[:] += 1
