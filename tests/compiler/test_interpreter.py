"""Programs have a meaning without any backend: on NumPy arrays, their kernels, copies, loops and branches compute what
the graph computes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.compiler.lowering.coverage import COMPILED, expect_equal, lowered
from tests.compiler.targets import TARGET
from tests.ir.ops.records import Record
from tests.random_programs.arrays import arguments_of
from tests.random_programs.programs import random_program
from tests.random_programs.tracked import difference
from tests.random_programs.tracking import Tracker
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Arena, Array, Constant, Copy, Input, Launch, Output, Program, Switch, While
from trivium.compiler.verifier import verify
from trivium.ir.errors import ExecutionError


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED])
def test_kernels_mean_what_the_op_does(record: Record) -> None:
    program = lowered(record)
    expect_equal(record, record.module(), interpret(program, *record.arrays))
    if any(kernel.contraction for kernel in program.kernels()):
        expect_equal(record, record.module(), interpret(program, *record.arrays, marks=True))


@pytest.mark.parametrize("seed", range(0, 150, 5))
def test_random_programs(seed: int) -> None:
    module = random_program(seed)
    arguments = arguments_of(module.main)
    expected = Tracker().main(module, arguments)  # the generator draws only values with known bounds
    program = lower(optimize(module), TARGET)
    verify(program)
    for marks in (False, True):
        for result, wanted in zip(interpret(program, *arguments, marks=marks), expected, strict=True):
            assert not difference(result, wanted)


def scalar_launch(name: str, result: str, compute, source: Array, destination: Array) -> Launch:
    b = KernelBuilder(name)
    x, y = b.input("x", source.dtype, ()), b.output("y", result, ())
    b.store(y, compute(b, b.load(x)))
    return Launch(b.build(), (source, destination))


def test_a_while_runs_until_its_predicate_is_false() -> None:
    x, y = Array("x", "f32", (), Input(0)), Array("y", "f32", (), Output(0))
    state, following = Array("state", "f32", (), Arena(0)), Array("next", "f32", (), Arena(64))
    going = Array("going", "i1", (), Arena(128))
    test = scalar_launch("below", "i1", lambda b, x: b.compare("LT", x, 100.0), state, going)
    double = scalar_launch("double", "f32", lambda b, x: b.multiply(x, 2.0), state, following)
    loop = While([test], going, [double, Copy(following, state)])
    program = Program("grow", [x], [y], [Copy(x, state), loop, Copy(state, y)], arena_size=192)
    verify(program)
    assert [interpret(program, np.float32(start))[0] for start in (3, 1000)] == [192, 1000]


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 20), (2, 30), (7, 30), (-1, 30)])
def test_a_switch_takes_the_last_branch_for_what_is_out_of_range(index: int, expected: int) -> None:
    which, y = Array("which", "i32", (), Input(0)), Array("y", "f32", (), Output(0))
    constants = [Array(f"c{n}", "f32", (), Constant(np.array(n, np.float32))) for n in (10, 20, 30)]
    program = Program("choose", [which], [y], [Switch(which, [[Copy(c, y)] for c in constants])])
    assert interpret(program, np.int32(index))[0] == expected


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(ExecutionError, match="p was given 1 arguments, expected 0"):
        interpret(Program("p"), np.zeros(1))


def test_no_backend_is_loaded() -> None:
    script = (
        "import sys; from tests.compiler import test_interpreter as t; "
        "t.test_random_programs(5); assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
