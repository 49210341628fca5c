"""Requests of the rows of a softmax: the loop that computes exponentials requests what is written after it, and what is
read for the next row; no other loop requests anything, and results stay the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.program import emit_program
from trivium.backends.cpu.target import CpuTarget, host, level
from trivium.compiler import pipeline
from trivium.compiler.lower import lower
from trivium.compiler.program import Program
from trivium.ir.text import parse

EAGER = replace(level("x86-64-v4"), prefetch_bytes=0, split_cost=60.0, wake_cost=60.0, piece_cost=2.0)


def lowered(rows: int, columns: int, dtype: str, power: str, target: CpuTarget = EAGER) -> Program:
    """Rows less their largest element, in a function, divided by their sums."""
    value, row, scalar = f"tensor<{rows}x{columns}x{dtype}>", f"tensor<{rows}x{dtype}>", f"tensor<{dtype}>"
    text = f"""
        func.func @main(%x: {value}) -> {value} {{
          %least = stablehlo.constant dense<-1.0e+10> : {scalar}
          %zero = stablehlo.constant dense<0.0> : {scalar}
          %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
            : ({value}, {scalar}) -> {row}
          %ms = stablehlo.broadcast_in_dim %m, dims = [0] : ({row}) -> {value}
          %d = stablehlo.subtract %x, %ms : {value}
          %e = stablehlo.{power} %d : {value}
          %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
            : ({value}, {scalar}) -> {row}
          %ss = stablehlo.broadcast_in_dim %s, dims = [0] : ({row}) -> {value}
          %r = stablehlo.divide %e, %ss : {value}
          return %r : {value}
        }}"""
    return lower(pipeline.optimize(parse(text), target), target)


def requests(program: Program, target: CpuTarget = EAGER) -> list[str]:
    """Returns whether what is requested is to be written, for each request."""
    lines = str(emit_program(program, target).module).splitlines()
    return [line.split("i32 ")[1][0] for line in lines if "call void" in line and "llvm.prefetch" in line]


def test_the_next_row_and_the_written_one() -> None:
    # Four vectors of 16 lanes side by side, each of which fills a line.
    assert requests(lowered(8, 1024, "f32", "exponential")) == ["0"] * 4 + ["1"] * 4


def test_what_is_not_worth_it() -> None:
    """Nothing for rows of small arrays, short rows, and rows with which little is computed."""
    assert not requests(lowered(8, 1024, "f32", "exponential"), replace(EAGER, prefetch_bytes=1 << 20))
    assert not requests(lowered(8, 128, "f32", "exponential"))
    assert not requests(lowered(8, 1024, "f32", "abs"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [256, 300])
def test_results(columns: int, threads: int) -> None:
    target = replace(host().with_threads(threads), prefetch_bytes=0, split_cost=60.0, wake_cost=60.0, piece_cost=2.0)
    program = lowered(33, columns, "f32", "exponential", target)
    assert requests(program, target)
    x = np.random.default_rng(0).standard_normal((33, columns)).astype(np.float32)
    power = np.exp(x - x.max(1, keepdims=True))
    (got,) = CpuExecutable(assemble_program(program, target)).execute(x)
    np.testing.assert_allclose(got, power / power.sum(1, keepdims=True), rtol=1e-6)
