"""A kernel is one parallel nest, and its updates determine along which dimensions elements are shared."""

from __future__ import annotations

import pytest

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.kernel import KernelBuilder, Loop, expression
from trivium.compiler.kernel.affine import apart
from trivium.ir.errors import CompileError


def nests(*extents: int, last: str = "parallel") -> KernelBuilder:
    """Returns a builder of a kernel with loops one after the other."""
    b = KernelBuilder("nests")
    x, y = b.input("x", "f32", (8,)), b.output("y", "f32", (8,))
    for extent in extents[:-1]:
        with b.parallel(extent) as (i,):
            b.store(y, b.load(x, i), i)
    if last == "parallel":
        with b.parallel(extents[-1]) as (i,):
            b.store(y, b.load(x, i), i)
    else:
        with b.sequential(extents[-1]) as loop:
            b.store(y, b.load(x, loop.index), loop.index)
    return b


def test_a_kernel_is_one_parallel_nest() -> None:
    nests(8).build()
    with pytest.raises(CompileError, match="the kernel has 2 parallel loops in a row, expected one around all"):
        nests(4, 8).build()
    with pytest.raises(CompileError, match=r"store of y\[8\] outside of the kernel's parallel loop"):
        nests(4, 8, last="sequential").build()
    with pytest.raises(CompileError, match=r"store of y\[8\] outside of the kernel's parallel loop"):
        nests(8, last="sequential").build()


def test_scratch_is_inside_the_nest() -> None:
    b = KernelBuilder("outside")
    y = b.output("y", "f32", (8,))
    scratch = b.scratch("f32", (8,))
    with b.parallel(8) as (i,):
        b.store(y, b.load(scratch, i), i)
    with pytest.raises(CompileError, match="scratch outside of the kernel's parallel loop"):
        b.build()


def updating(*places: str) -> tuple[KernelBuilder, Loop]:
    """Builds an outer loop over i and j, an inner one over k, and an update at indices among i, j, k and the loaded
    index `at`."""
    b = KernelBuilder("update")
    x, y = b.input("x", "i64", (4, 4)), b.inout("y", "f32", (4,) * len(places))
    with b.parallel(4, 4) as (i, j), b.parallel(4) as (k,):
        named = {"i": i, "j": j, "k": k, "at": b.load(x, i, j), "i+k": expression([(i, 1), (k, 1)])}
        b.update([(y, tuple(named[place] for place in places))], [b.constant(1.0, "f32")], "add")
    return b, b.body.instructions[0]  # type: ignore[return-value]


def test_iterations_that_update_different_elements() -> None:
    for places, outer, inner in (
        (("i", "j", "k"), {0, 1}, {0}),
        (("at", "j", "k"), {1}, {0}),
        (("i+k", "j"), {1}, {0}),
        (("i", "at"), {0}, set()),
        (("at",), set(), set()),
    ):
        b, loop = updating(*places)
        b.build()
        assert apart(loop) == outer
        assert apart(loop.body.instructions[-1]) == inner  # type: ignore[arg-type]
    (loop,) = (i for i in scaled().body.instructions if isinstance(i, Loop))
    assert apart(loop) == {0, 1}


def test_updates_are_checked_and_printed() -> None:
    b, _ = updating("i", "at")
    assert "      update y[i0, %3] with %4 by add" in str(b.build())
    b = KernelBuilder("wrong")
    y = b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.update([(y, (i,))], [b.constant(1.0, "f32")], "add")
    with pytest.raises(CompileError, match="updates a buffer of mode out, expected inout or scratch"):
        b.build()
    b = KernelBuilder("wrong")
    y = b.inout("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.update([(y, (i,))], [b.constant(1.0, "f32")], "subtract")
    with pytest.raises(CompileError, match="subtract is not an associative operation"):
        b.build()
