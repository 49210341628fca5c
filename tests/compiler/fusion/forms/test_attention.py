"""Attention becomes one kernel, with the masks before it and the ops after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compiler.attention import Case, changed
from tests.compiler.targets import TARGET
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch
from trivium.ir.func import Module

FUSED = replace(TARGET, attention=True)


def kernels(module: Module) -> list[bool]:
    """Returns, for each launch, whether it is attention."""
    steps = lower(optimize(module), FUSED).steps
    return [step.kernel.attention is not None for step in steps if isinstance(step, Launch)]


@pytest.mark.parametrize("mask", ["", "causal", "added", "bool"])
@pytest.mark.parametrize("safe", [False, True])
def test_masks(mask: str, safe: bool) -> None:
    assert kernels(Case(mask=mask, safe=safe).module()) == [True]


def test_heads_that_share_keys_and_values_read_them_where_they_are() -> None:
    assert kernels(Case(heads=6, groups=3).module()) == [True]


def test_other_devices_have_no_such_kernel() -> None:
    steps = lower(optimize(Case().module()), TARGET).steps
    assert not any(step.kernel.attention for step in steps if isinstance(step, Launch))


@pytest.mark.parametrize(
    "case", [Case(queries=15), Case(keys=15), Case(depth=15), Case(features=15), Case(features=300)]
)
def test_small_and_large_extents(case: Case) -> None:
    assert True not in kernels(case.module())


def test_what_follows_is_stored_by_the_same_kernel() -> None:
    out = "tensor<1x2x40x36xf32>"
    module = changed(Case().text(), (f"return %o : {out}", f"%n = stablehlo.negate %o : {out}\nreturn %n : {out}"))
    assert kernels(module) == [True]


@pytest.mark.parametrize("safe", [False, True])
def test_greatest_scores_and_sums_of_weights_are_stored_by_the_same_kernel(safe: bool) -> None:
    assert kernels(Case(mask="bool", safe=safe, rows=True).module()) == [True]
