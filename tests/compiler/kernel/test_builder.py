"""Building kernels: folding of index arithmetic, types, loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import (
    KernelBuilder,
    expression,
)
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.interpreter import run
from trivium.ir.errors import CompileError


def test_constant_index_arithmetic_is_folded() -> None:
    b = KernelBuilder("fold")
    y = b.output("y", "f32", (100,))
    with b.parallel(4) as (i,):
        b.store(y, 1.0, i)
        assert b.add(b.multiply(i, 1), 0) is i
        assert b.position(expression([(i, 1)])) is i
        nine = b.add(b.multiply(b.index(4), 2), 1)
    analysis = Analysis(b.build())
    assert (analysis.form(nine).offset, analysis.form(nine).terms) == (9, {})


def test_numbers_in_index_expressions_are_seen_through() -> None:
    """A number that was computed from an expression becomes that expression again when it is used as an index."""
    b = KernelBuilder("through")
    x, y = b.input("x", "i64", (60,)), b.output("y", "i64", (10,))
    with b.parallel(10) as (i,):
        place = b.position(expression([(i, 2)], 1))
        b.store(y, b.add(b.load(x, place), place), i)
    lines = str(b.build()).splitlines()
    assert "    %1 = i0*2 + 1 : i64" in lines
    assert "    %2 = load x[i0*2 + 1] : i64" in lines


def test_types_of_operands() -> None:
    b = KernelBuilder("mixed")
    with pytest.raises(CompileError, match="operands have types f32, i32, expected equal types"):
        b.add(b.constant(1, "f32"), b.constant(1, "i32"))
    with pytest.raises(CompileError, match="tanh: operands have type i32"):
        b.apply("tanh", b.constant(1, "i32"))
    with pytest.raises(CompileError, match="'frobnicate' is not a scalar operation"):
        b.apply("frobnicate", b.constant(1, "i32"))


def test_python_numbers_take_the_type_of_the_other_operand() -> None:
    b = KernelBuilder("typed")
    assert b.add(b.constant(1, "bf16"), 2.0).dtype == "bf16"
    assert b.clamp(0, b.constant(1, "i8"), 7).dtype == "i8"
    assert b.select(b.constant(True, "i1"), 0, b.constant(1.0, "f64")).dtype == "f64"
    with pytest.raises(CompileError, match="add: has only Python numbers as operands"):
        b.add(1, 2)
    with pytest.raises(CompileError, match="select: both branches are Python numbers"):
        b.select(b.constant(True, "i1"), 0, 1)


def test_a_conversion_to_the_same_type_is_removed() -> None:
    b = KernelBuilder("convert")
    one = b.constant(1, "i32")
    assert b.convert(one, "i32") is one
    assert b.convert(one, "f32").dtype == "f32"


def test_whiles_carry_values() -> None:
    """Doubles a number until it reaches a limit."""
    b = KernelBuilder("double")
    x, y = b.input("x", "f32", ()), b.output("y", "f32", ())
    with b.while_(b.load(x)) as loop:
        loop.condition(b.compare("LT", loop.carried[0], 100.0))
        loop.yield_(b.multiply(loop.carried[0], 2.0))
    b.store(y, loop.results[0])
    result = np.zeros((), np.float32)
    run(b.build(), [np.array(3, np.float32).reshape(-1), result.reshape(-1)])
    assert result == 192


def test_blocks_are_inlined_with_their_own_values() -> None:
    b = KernelBuilder("inline")
    y = b.output("y", "f32", (2,))
    with b.block("f32") as square:
        square.yields = [b.multiply(*square.parameters * 2)]
    for place, literal in enumerate((3.0, 4.0)):
        b.store(y, *b.inline(square, b.constant(literal, "f32")), place)
    result = np.zeros(2, np.float32)
    run(b.build(), [result])
    assert result.tolist() == [9, 16]
