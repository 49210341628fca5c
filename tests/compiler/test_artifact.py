"""What an artifact states about itself: sizes, what packing reads and writes, and on which machines its code runs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from trivium.compiler.artifact import (
    Artifact,
    Axis,
    ConstantData,
    Embedded,
    Machine,
    ModuleConstant,
    Packing,
    Slot,
    lacking,
    require_machine,
)
from trivium.ir.errors import Error
from trivium.ir.types import C64, F64, tensor, type_of

MACHINE = Machine("x86_64-unknown-linux-gnu", "znver3", "+avx2,-avx512f,+fma")
PACKING = Packing(4, 1, (Axis(2, 6),), (Axis(3, 1),), (Axis(2, 3),), (2, 2))
EMPTY = Artifact("main", MACHINE, 4, 2, "trivium 1", b"", (), (), 0, 64)


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [(np.float64, (2, 3), 48), (np.complex64, (), 8), (ml_dtypes.bfloat16, (0, 5), 0), (ml_dtypes.int4, (3,), 3)],
)
def test_slots_are_arrays_and_types(dtype: type, shape: tuple[int, ...], nbytes: int) -> None:
    slot = Slot(np.dtype(dtype), shape)
    array = np.zeros(shape, dtype)
    assert slot.nbytes == array.nbytes == nbytes
    assert slot.type is type_of(array)


def test_types_of_slots() -> None:
    assert Slot(np.dtype(np.float64), (2, 3)).type is tensor(2, 3, of=F64)
    assert Slot(np.dtype(np.complex64), ()).type is tensor(of=C64)


def places(packing: Packing) -> set[int]:
    """Returns the index of every element that is read."""
    axes = (*packing.batch, *packing.columns, *packing.reduction)
    steps = ([axis.stride * step for step in range(axis.extent)] for axis in axes)
    return {packing.offset + sum(each) for each in itertools.product(*steps)}


@pytest.mark.parametrize(
    ("packing", "nbytes"),
    [
        (PACKING, 4 * 2 * 2 * 4),
        (replace(PACKING, columns=(Axis(3, -1),)), 64),
        (replace(PACKING, itemsize=1, widths=(16,)), 64),
        (replace(PACKING, batch=(Axis(2, 12), Axis(2, -7))), 128),
        (replace(PACKING, batch=(), columns=(), reduction=(), widths=(8,)), 32),
        (replace(PACKING, batch=(Axis(3, 0),)), 96),
    ],
)
def test_packing_knows_its_size_and_what_it_reads(packing: Packing, nbytes: int) -> None:
    assert packing.nbytes == nbytes
    read = places(packing)
    assert (packing.reach.start, packing.reach.stop) == (min(read), max(read) + 1)


def test_constants_have_the_size_that_the_program_reads() -> None:
    embedded = ConstantData(Embedded(np.zeros(13, np.uint8)))
    reference = ConstantData(ModuleConstant(7, 16, 52))
    packed = replace(reference, packing=PACKING)
    assert [constant.nbytes for constant in (embedded, reference, packed)] == [13, 52, 64]
    assert replace(EMPTY, constants=(embedded, reference, packed)).constant_size == 129
    assert EMPTY.constant_size == 0


def test_whole_artifacts_refer_to_no_module() -> None:
    embedded = ConstantData(Embedded(np.zeros(4, np.uint8)), PACKING)
    assert EMPTY.is_whole
    assert replace(EMPTY, constants=(embedded,)).is_whole
    assert not replace(EMPTY, constants=(embedded, ConstantData(ModuleConstant(0, 0, 0)))).is_whole


@pytest.mark.parametrize(
    ("features", "needs"), [("+avx2,-avx512f,+fma", {"avx2", "fma"}), ("", set()), ("-sse2", set()), ("+a", {"a"})]
)
def test_features_that_are_needed(features: str, needs: set[str]) -> None:
    assert replace(MACHINE, features=features).needs == needs


def test_a_machine_with_more_runs_the_code() -> None:
    artifact = replace(EMPTY, machine=MACHINE)
    require_machine(artifact, MACHINE)
    require_machine(artifact, replace(MACHINE, cpu="znver5", features="+avx2,+avx512f,+fma"))
    assert lacking(replace(MACHINE, features=""), replace(MACHINE, features="")) == []


def test_code_for_another_machine() -> None:
    older = Machine(MACHINE.triple, "nehalem", "+sse4.2,-avx2")
    with pytest.raises(Error, match=r"main .* for znver3 .* this machine is nehalem .*: nehalem has no avx2, fma"):
        require_machine(EMPTY, older)
    foreign = replace(older, triple="aarch64-apple")
    with pytest.raises(Error, match="x86_64-unknown-linux-gnu is not aarch64-apple; nehalem has no avx2, fma"):
        require_machine(EMPTY, foreign)
    assert len(lacking(MACHINE, foreign)) == 2
