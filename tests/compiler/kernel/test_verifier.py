"""The errors for malformed kernels."""

from __future__ import annotations

import pytest

from trivium.compiler.kernel import (
    Apply,
    Block,
    Buffer,
    Kernel,
    KernelBuilder,
    Register,
    Store,
    expression,
)
from trivium.ir.errors import CompileError


def verification_error(body: Block, *params: Buffer) -> str:
    with pytest.raises(CompileError) as error:
        Kernel("wrong", list(params), body).verify()
    assert "verifying kernel wrong" in str(error.value)
    return str(error.value)


def test_use_before_definition() -> None:
    x, y, i = Register("f32"), Register("f32"), Register("i64")
    out = Buffer("out", "f32", (1,), "out")
    assert "not defined before it" in verification_error(Block([], [Apply("negate", (x,), {}, y)]))
    assert "not defined before it" in verification_error(Block([], [Store(out, x, (expression([(i, 1)]),))]), out)


def test_accesses_are_checked() -> None:
    b = KernelBuilder("wrong")
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (8,))
    b.store(y, b.load(x, 0), 0)
    with pytest.raises(CompileError, match="has 1 indices, expected 2"):
        b.build()
    b = KernelBuilder("wrong")
    x = b.input("x", "f32", (4,))
    b.store(x, 1.0, 0)
    with pytest.raises(CompileError, match="writes an input buffer"):
        b.build()


def test_reductions_need_an_associative_combiner() -> None:
    b = KernelBuilder("wrong")
    with b.reduction(4, inits=[b.constant(0.0, "f32")], combiner="subtract") as loop:
        loop.yield_(b.constant(1.0, "f32"))
    with pytest.raises(CompileError, match="subtract is not an associative operation"):
        b.build()


def test_a_buffer_is_one_parameter() -> None:
    x = Buffer("x", "f32", (4,), "in")
    with pytest.raises(CompileError, match="a buffer appears twice among the parameters"):
        Kernel("wrong", [x, x], Block()).verify()


def test_values_of_a_loop_end_with_it() -> None:
    b = KernelBuilder("wrong")
    x, y = b.input("x", "f32", (4,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        with b.sequential(4) as loop:
            inside = b.load(x, loop.index)
        b.store(y, inside, i)
    with pytest.raises(CompileError, match="not defined before it"):
        b.build()


def test_stored_values_have_the_type_of_the_buffer() -> None:
    b = KernelBuilder("wrong")
    y = b.output("y", "f32", ())
    b.store(y, b.constant(1, "i32"))
    with pytest.raises(CompileError, match="i32"):
        b.build()


def sorts(dtype: str, mode: str, count: int = 8) -> KernelBuilder:
    b = KernelBuilder("sorts")
    y = b.input("y", dtype, (4, 8)) if mode == "in" else b.inout("y", dtype, (4, 8))
    with b.parallel(4) as (i,):
        b.sort_keys(y, count, i, 0)
    return b


def test_sorts_are_checked_and_printed() -> None:
    assert "    sort 8 from y[i0, 0]" in str(sorts("i32", "inout").build())
    with pytest.raises(CompileError, match=r"sortkeys of y\[4, 8\] has f32\[8\], expected elements of type i32 or i64"):
        sorts("f32", "inout").build()
    with pytest.raises(CompileError, match="updates a buffer of mode in, expected inout or scratch"):
        sorts("i32", "in").build()
