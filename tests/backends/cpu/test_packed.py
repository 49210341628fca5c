"""Packing of constants: the output of the native packer matches the description, whatever the operand's memory
order."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from trivium.backends.cpu.packed import _shared, constants_of, packed
from trivium.compiler.artifact import Artifact, Axis, ConstantData, Embedded, Machine, ModuleConstant, Packing
from trivium.ir.errors import CompileError


def offsets(axes: tuple[Axis, ...]) -> list[int]:
    """Returns the offset of each flat index of several axes."""
    indices = product(*(range(axis.extent) for axis in axes))
    return [sum(i * axis.stride for i, axis in zip(index, axes, strict=True)) for index in indices]


def expected(elements: np.ndarray, packing: Packing) -> np.ndarray:
    """Packs by the definition, element by element."""
    columns, written = offsets(packing.columns), []
    for batch in offsets(packing.batch):
        start = 0
        for width in packing.widths:
            for line in offsets(packing.reduction):
                for column in range(start, start + width):
                    inside = column < len(columns)
                    written.append(elements[packing.offset + batch + line + columns[column]] if inside else 0)
            start += width
    return np.array(written, elements.dtype)


CASES = {
    "columns apart": Packing(4, 0, (), (Axis(20, 7),), (Axis(7, 1),), (16, 8)),
    "columns together": Packing(4, 3, (), (Axis(21, 1),), (Axis(40, 21),), (16, 16)),
    "batch": Packing(8, 0, (Axis(3, 90),), (Axis(9, 10),), (Axis(10, 1),), (4, 4, 4)),
    "several axes": Packing(
        4, 0, (Axis(2, 1), Axis(2, 2)), (Axis(3, 4), Axis(5, 12)), (Axis(2, 60), Axis(3, 120)), (8, 8)
    ),
    "backwards": Packing(2, 99, (), (Axis(10, -1),), (Axis(10, -10),), (8, 8)),
    "exactly": Packing(1, 0, (), (Axis(8, 1),), (Axis(5, 8),), (8,)),
    "a panel of zeros": Packing(4, 0, (), (Axis(4, 1),), (Axis(3, 4),), (4, 4)),
    "complex": Packing(16, 0, (), (Axis(6, 11),), (Axis(11, 1),), (4, 4)),
    "many lines": Packing(4, 1, (), (Axis(5, 1000),), (Axis(1000, 1),), (8,)),
}
TYPES = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64, 16: np.complex128}


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_panels(name: str, shift: int) -> None:
    """The memory may also start at an address that is not a multiple of the element's size."""
    packing = CASES[name]
    elements = np.random.default_rng(3).integers(1, 200, packing.reach.stop).astype(TYPES[packing.itemsize])
    memory = np.zeros(elements.nbytes + shift, np.uint8)
    memory[shift:] = elements.view(np.uint8)
    found = packed(memory[shift:], packing)
    assert found.nbytes == packing.nbytes
    np.testing.assert_array_equal(found.view(elements.dtype), expected(elements, packing))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def artifact(*constants: ConstantData) -> Artifact:
    return Artifact("main", Machine("", "", ""), 0, 1, "", b"", (), (), 0, 64, constants=constants)


def test_constants_of_the_module_are_found_by_number_and_offset() -> None:
    first, second = np.arange(6, dtype=np.float32), np.arange(12, dtype=np.int16).reshape(3, 4).T
    referring = artifact(
        ConstantData(ModuleConstant(1, 0, 24)),
        ConstantData(ModuleConstant(0, 8, 8)),
        ConstantData(ModuleConstant(0, 0, 24), Packing(4, 0, (), (Axis(3, 1),), (Axis(2, 3),), (4,))),
        ConstantData(Embedded(np.arange(3, dtype=np.int64))),
    )
    turned, part, panel, own = constants_of(referring, [first, second])
    np.testing.assert_array_equal(turned.view(np.int16).reshape(4, 3), second)
    np.testing.assert_array_equal(part.view(np.float32), [2, 3])
    np.testing.assert_array_equal(panel.view(np.float32), [0, 1, 2, 0, 3, 4, 5, 0])
    np.testing.assert_array_equal(own.view(np.int64), [0, 1, 2])


@pytest.mark.parametrize("reference", [ModuleConstant(2, 0, 1), ModuleConstant(0, 8, 20), ModuleConstant(1, 0, 25)])
def test_another_module_is_refused(reference: ModuleConstant) -> None:
    arrays = [np.arange(6, dtype=np.float32), np.arange(12, dtype=np.int16)]
    with pytest.raises(CompileError, match="main was made of another module"):
        constants_of(artifact(ConstantData(reference)), arrays)


def test_what_cannot_change_is_packed_once() -> None:
    packing = CASES["columns apart"]
    elements = np.arange(packing.reach.stop, dtype=np.float32)
    assert packed(elements, packing) is not packed(elements, packing), "somebody may write to it in between"
    elements.flags.writeable = False
    first = packed(elements, packing)
    assert packed(elements[:], packing) is first
    assert packed(elements, replace(packing, widths=(8, 8, 8))) is not first
    assert packed(elements.copy(), packing) is not first
    np.testing.assert_array_equal(first.view(np.float32), expected(elements, packing))


def test_what_was_packed_keeps_its_source_and_goes_with_its_programs() -> None:
    packing = CASES["columns apart"]
    source = np.arange(packing.reach.stop, dtype=np.float32)
    source.flags.writeable = False
    memory = weakref.ref(source)
    panels = packed(source, packing)
    address = source.ctypes.data, source.nbytes, packing
    del source
    gc.collect()
    assert memory() is not None
    assert _shared[address] is panels
    del panels
    gc.collect()
    assert memory() is None
    assert address not in _shared
