"""Which loops run in vectors: by the types and strides of what they access, their alignment, and what they compute."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trivium.backends.gpu import nvptx, spirv, vectors
from trivium.backends.gpu.schedule import parallel_loop
from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.kernel.structure import Buffer
from trivium.compiler.schedule import merged_extents

TARGET = nvptx.target("sm_90a")


def converted(source: str, target: str, extent: int = 1 << 20) -> Kernel:
    b = KernelBuilder("converted")
    x, y = b.input("x", source, (extent,)), b.output("y", target, (extent,))
    with b.parallel(extent) as (i,):
        value = b.load(x, i)
        b.store(y, value if source == target else b.convert(value, target), i)
    return b.build()


def added(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Kernel:
    """Returns the sum of a matrix, and of a view of another array."""
    b = KernelBuilder("added")
    x, y = b.input("x", "f32", tuple(shape)), b.output("y", "f32", tuple(shape))
    view = Buffer("view", DType("f32"), tuple(shape), "in", tuple(strides), offset)
    b.params.append(view)
    with b.parallel(*shape) as (i, j):
        b.store(y, b.add(b.load(x, i, j), b.load(view, i, j)), i, j)
    return b.build()


def lanes(kernel: Kernel, target: GpuTarget = TARGET, whole: bool = False) -> int:
    loop, analysis = parallel_loop(kernel), Analysis(kernel)
    assert loop is not None
    found = vectors.vector(loop, merged_extents(loop, analysis), analysis, target, whole)
    return found.size if found else 1


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("f32", "f32", 4),
        ("bf16", "bf16", 8),
        ("f32", "bf16", 4),
        ("i8", "f32", 4),
        ("f64", "f64", 2),
        ("ui8", "ui8", 16),
    ],
)
def test_types(source: str, target: str, expected: int) -> None:
    assert lanes(converted(source, target)) == expected


@pytest.mark.parametrize(
    ("strides", "offset", "expected"),
    [
        ((1024, 1), 0, 4),
        ((0, 1), 0, 4),  # one row for all
        ((1, 0), 0, 4),  # one element for all columns
        ((1, 1024), 0, 1),  # transposed
        ((2048, 2), 0, 1),
        ((1024, 1), 2, 2),
        ((1024, 1), 1, 1),
        ((1026, 1), 0, 2),
    ],
)
def test_views(strides: tuple[int, int], offset: int, expected: int) -> None:
    assert lanes(added((1024, 1024), strides, offset)) == expected


def test_loops_that_end_with_part_of_a_vector() -> None:
    assert lanes(converted("f32", "f32", (1 << 20) + 1)) == 4
    assert lanes(converted("f32", "f32", (1 << 20) + 1), whole=True) == 1
    assert lanes(converted("f32", "f32", 1002)) == 2


def test_what_is_computed() -> None:
    def computed(op: str, times: int, dtype: str = "f32") -> Kernel:
        b = KernelBuilder("computed")
        x, y = b.input("x", dtype, (1 << 20,)), b.output("y", dtype, (1 << 20,))
        with b.parallel(1 << 20) as (i,):
            value = b.load(x, i)
            for _ in range(times):
                value = b.apply(op, value, value) if op == "remainder" else b.apply(op, value)
            b.store(y, value, i)
        return b.build()

    assert lanes(computed("tanh", 1)) == 4
    assert lanes(computed("tanh", 2, "bf16")) == 4
    assert lanes(computed("tanh", 4)) == 1
    assert lanes(computed("remainder", 1)) == 1


def test_some_targets_have_none() -> None:
    assert lanes(converted("f32", "f32"), spirv.target()) == 1
