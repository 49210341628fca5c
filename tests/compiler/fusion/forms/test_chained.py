"""The gradients of attention become a kernel each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compiler.attention_gradients import FUSED, Gradients
from tests.compiler.targets import TARGET
from trivium.compiler.kernel.chained import Chained
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch
from trivium.compiler.target import Target
from trivium.ir.func import Module


def products(module: Module, target: Target = FUSED) -> list[int]:
    """Returns, for each launch, of how many products it computes weights."""
    kernels = [step.kernel for step in lower(optimize(module), target).steps if isinstance(step, Launch)]
    return [len(kernel.attention.products) if isinstance(kernel.attention, Chained) else 0 for kernel in kernels]


@pytest.mark.parametrize("case", [Gradients(), Gradients(mask="causal"), Gradients(mask="added", rounded=True)])
def test_weights_are_computed_where_they_are_needed(case: Gradients) -> None:
    assert sorted(products(case.module())) == [1, 2, 2]


def test_factors_are_read_as_they_are() -> None:
    steps = lower(optimize(Gradients().module()), FUSED).steps
    kernels = [step.kernel for step in steps if isinstance(step, Launch)]
    assert {str(buffer.dtype) for kernel in kernels for buffer in kernel.params if len(buffer.shape) == 3} == {
        "bf16",
        "f32",
    }
    assert all(str(mark.values.rhs.buffer.dtype) == "bf16" for kernel in kernels if (mark := kernel.attention))


@pytest.mark.parametrize("case", [replace(Gradients(), **{name: 200}) for name in ("depth", "features")])
def test_large_extents(case: Gradients) -> None:
    assert not any(products(case.module()))


def test_other_devices_have_no_such_kernel() -> None:
    assert not any(products(Gradients().module(), replace(TARGET, attention=True)))
