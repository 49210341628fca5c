"""The loop nest of attention, which defines its meaning: as the interpreter of kernels runs it, beside attention in
f64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.attention import Case
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import Scratch, walk
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch, Program
from trivium.compiler.verifier import verify
from trivium.ir.interpreter import evaluate

FUSED = replace(TARGET, attention=True)


def lowered(case: Case) -> Program:
    program = lower(optimize(case.module()), FUSED)
    verify(program)
    return program


@pytest.mark.parametrize(
    "case",
    [
        Case(queries=17, keys=130, mask="added"),
        Case(heads=4, groups=2, queries=20, keys=64, mask="causal"),
        Case(queries=16, keys=33, mask="bool", safe=True),
        Case(queries=18, keys=20, values_first=True),
        Case(queries=18, keys=70, mask="bool", safe=True, rows=True),
    ],
)
def test_meaning(case: Case) -> None:
    given = case.arguments()
    result, *rows = interpret(lowered(case), *given)
    np.testing.assert_allclose(result, case.expected(*given), rtol=2e-6, atol=4e-6)
    for row, expected in zip(rows, evaluate(case.module(), *given)[1:], strict=True):
        np.testing.assert_allclose(row, expected, rtol=2e-6)


def test_no_row_of_scores_exists() -> None:
    program = lowered(Case(heads=1, queries=16, keys=100_000))
    (launch,) = [step for step in program.steps if isinstance(step, Launch)]
    assert program.arena_size == 0
    assert sorted(i.buffer.size for i in walk(launch.kernel.body) if isinstance(i, Scratch)) == [36, 64]


def test_kernels_with_the_mark_and_without_it_differ() -> None:
    (launch,) = [step for step in lowered(Case()).steps if isinstance(step, Launch)]
    assert replace(launch.kernel, attention=None).digest() != launch.kernel.digest()
    assert "attention" in str(launch.kernel).splitlines()[-2]
