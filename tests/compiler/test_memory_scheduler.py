"""The order of launches for a low peak of memory. Random programs are run in it, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compiler.lowering.running import expect_same, some
from tests.compiler.targets import TARGET
from trivium.compiler import lower as lowering
from trivium.compiler.lower import lower
from trivium.compiler.program import Input, Launch, Program
from trivium.compiler.target import Target
from trivium.compiler.verifier import verify
from trivium.ir.text import parse

LAYERS, N = 6, 32
KIND = f"tensor<{N}x{N}xf32>"
SMALL = f"tensor<{N}xf32>"


def training(marks: str = "") -> str:
    """A chain of products and its gradient. All gradients of weights come last; each is reduced to a row."""
    weights = ", ".join(f"%w{n}: {KIND}" for n in range(LAYERS))
    biases = ", ".join(f"%b{n}: {SMALL} {marks}" for n in range(LAYERS))
    lines = ["%zero = stablehlo.constant dense<0.0> : tensor<f32>", "%x0 = stablehlo.sine %x : " + KIND]
    for n in range(LAYERS):
        lines += [
            f"%p{n} = stablehlo.dot_general %x{n}, %w{n}, contracting_dims = [1] x [0] : ({KIND}, {KIND}) -> {KIND}",
            f"%x{n + 1} = stablehlo.tanh %p{n} : {KIND}",
        ]
    lines.append(f"%g{LAYERS} = stablehlo.cosine %x{LAYERS} : {KIND}")
    for n in reversed(range(LAYERS)):
        lines.append(
            f"%g{n} = stablehlo.dot_general %g{n + 1}, %w{n}, contracting_dims = [1] x [1] : ({KIND}, {KIND}) -> {KIND}"
        )
    for n in range(LAYERS):
        lines += [
            f"%d{n} = stablehlo.dot_general %x{n}, %g{n + 1}, contracting_dims = [0] x [0] "
            f": ({KIND}, {KIND}) -> {KIND}",
            f"%s{n} = stablehlo.reduce(%d{n} init: %zero) applies stablehlo.add across dimensions = [0] "
            f": ({KIND}, tensor<f32>) -> {SMALL}",
            f"%r{n} = stablehlo.add %s{n}, %b{n} : {SMALL}",
        ]
    results = ", ".join(f"%r{n}" for n in range(LAYERS))
    kinds = ", ".join([SMALL] * LAYERS)
    body = "\n".join(lines)
    return f"func.func @main(%x: {KIND}, {weights}, {biases}) -> ({kinds}) {{\n{body}\nreturn {results} : {kinds} }}"


def unscheduled(text: str, monkeypatch: pytest.MonkeyPatch, target: Target = TARGET) -> Program:
    with monkeypatch.context() as patch:
        patch.setattr(lowering, "schedule_for_memory", lambda *_: None)
        return lower(parse(text), target)


def given(program: Program) -> set[int]:
    """Returns the results that may be in the memory of arguments."""
    places = (value.storage for value in program.inputs)
    return {place.result for place in places if isinstance(place, Input) and place.result is not None}


def names(program: Program) -> list[str]:
    return [step.kernel.name for step in program.steps if isinstance(step, Launch)]


def test_gradients_of_weights_are_computed_when_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    before = unscheduled(training(), monkeypatch)
    arguments = [some(N, N, seed=n) / 4 for n in range(LAYERS + 1)] + [some(N, seed=n) for n in range(LAYERS)]
    after = expect_same(parse(training()), arguments, 1e-4)
    verify(after)
    assert sorted(names(before)) == sorted(names(after))
    assert names(before) != names(after)
    assert after.arena_size < 0.8 * before.arena_size


def test_results_stay_in_the_memory_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    text = training("{jax.buffer_donor = true}")
    giving = replace(TARGET, donation=True)
    program = lower(parse(text), giving)
    verify(program)
    assert given(program) == given(unscheduled(text, monkeypatch, giving))
    assert len(given(program)) >= LAYERS - 1


def test_an_order_that_needs_as_much_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"func.func @main(%x: {KIND}) -> {KIND} {{ %0 = stablehlo.sine %x : {KIND} return %0 : {KIND} }}"
    assert names(unscheduled(text, monkeypatch)) == names(lower(parse(text), TARGET))
