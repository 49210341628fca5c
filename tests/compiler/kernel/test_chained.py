"""The loop nest of chained products, which defines their meaning: as the interpreter of kernels runs it, beside the
gradients of attention in f64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.attention_gradients import FUSED, Gradients
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import Scratch, walk
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch
from trivium.compiler.verifier import verify


@pytest.mark.parametrize("case", [Gradients(dtype="f32", mask="causal"), Gradients(mask="added", queries=70, keys=17)])
def test_meaning(case: Gradients) -> None:
    program, given = lower(optimize(case.module()), FUSED), case.arguments()
    verify(program)
    for result, expected in zip(interpret(program, *given), case.expected(*given), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_no_row_of_weights_exists() -> None:
    program = lower(optimize(Gradients(queries=16, keys=10_000, depth=16, features=16).module()), FUSED)
    kernels = [step.kernel for step in program.steps if isinstance(step, Launch)]
    assert program.arena_size == 0
    assert {i.buffer.size for kernel in kernels for i in walk(kernel.body) if isinstance(i, Scratch)} == {16, 64}
