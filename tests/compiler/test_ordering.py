"""Steps that do not depend on one another become neighbours, in an order that computes the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tests.compiler.targets import BATCHING
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.lower import lower
from trivium.compiler.ordering import PATIENCE, batched, spans
from trivium.compiler.program import Arena, Array, Copy, Launch, Step
from trivium.compiler.verifier import verify
from trivium.ir.text import parse

A, B, C, D, E = (Array(name, "f32", (4,), Arena()) for name in "abcde")


def negated(source: Array, target: Array, op: str = "negate") -> Launch:
    b = KernelBuilder(op)
    x, y = b.input("x", "f32", (4,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.store(y, b.apply(op, b.load(x, i)), i)
    return Launch(b.build(), (source, target))


def ordered(steps: Sequence[Step], kinds: Mapping[str, str | None] | None = None) -> list[list[Step]]:
    """Returns the batches of steps, whose kernels are of one kind unless their digests are in `kinds`."""
    return batched(steps, lambda kernel: (kinds or {}).get(kernel.digest(), "any"))


def test_the_longest_chain_goes_first_and_takes_others_along() -> None:
    other, first, second = negated(A, E), negated(A, B), negated(B, C)
    assert ordered([first, second, other]) == [[first, other], [second]]


def test_a_launch_waits_for_another_of_its_kind() -> None:
    early, first, second, late = negated(A, E, "cosine"), negated(A, B), negated(B, C), negated(C, D, "cosine")
    kinds = {early.kernel.digest(): "tiles"}
    assert ordered([early, first, second, late], kinds) == [[first], [second], [early, late]]
    assert ordered([early, first, second, late], dict.fromkeys(kinds)) == [[first], [second], [early], [late]]


def test_a_launch_waits_for_a_limited_number_of_batches() -> None:
    values = [Array(f"v{n}", "f32", (4,), Arena()) for n in range(2 * PATIENCE)]
    chain = [negated(*pair) for pair in pairwise(values)]
    early = negated(A, B, "cosine")
    assert ordered([early, *chain], {early.kernel.digest(): "tiles"}).index([early]) == PATIENCE


def test_what_is_read_is_not_overwritten_before() -> None:
    read, written = negated(A, B), negated(C, A)
    assert ordered([read, written]) == [[read], [written]]
    twice = negated(C, B)
    assert ordered([read, twice]) == [[read], [twice]]


def test_parts_of_one_value_wait_only_for_the_first() -> None:
    first, second, third = (negated(one, C) for one in (A, B, D))
    read, after = negated(C, E), negated(C, D)
    first.whole = second.whole = third.whole = object()
    assert ordered([read, first, second, third]) == [[read], [first], [second, third]]
    assert ordered([first, second, after]) == [[first], [second], [after]]
    third.whole = object()
    assert ordered([first, second, third]) == [[first], [second], [third]]


def test_other_steps_stay_where_they_are() -> None:
    before, copy, after = negated(A, B), Copy(B, C), negated(D, E)
    assert ordered([before, copy, after]) == [[before], [copy], [after]]


def test_spans() -> None:
    one, two, three = negated(A, B), negated(A, C), negated(C, D)
    assert list(spans([[three], [one, two]])) == [(1, 2, {A, B, C})]


def test_steps_of_a_batch_share_no_bytes() -> None:
    """Two chains, of which the program computes one after the other. The first steps are neighbours, so
    that their results are alive together."""
    module = parse(
        "func.func @main(%x: tensor<8x40xf32>, %y: tensor<40x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {\n"
        "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] "
        ": (tensor<8x40xf32>, tensor<40x8xf32>) -> tensor<8x8xf32>\n"
        "%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] "
        ": (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "%2 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] "
        ": (tensor<8x40xf32>, tensor<8x40xf32>) -> tensor<8x8xf32>\n"
        "%3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0] "
        ": (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>\n}"
    )
    program = lower(module, BATCHING)
    verify(program)
    (zero, two), (one, three) = program.steps[:2], program.steps[2:]
    assert isinstance(zero, Launch)
    assert isinstance(two, Launch)
    assert zero.arguments[-1] not in two.arguments
    places = {step.arguments[-1].storage for step in (zero, two) if isinstance(step, Launch)}
    assert len({storage.offset for storage in places if isinstance(storage, Arena)}) == 2
    assert {one.arguments[0], three.arguments[0]} == {zero.arguments[-1], two.arguments[-1]}  # type: ignore[union-attr]
    x, y = (np.random.default_rng(0).integers(-3, 3, shape).astype(np.float32) for shape in ((8, 40), (40, 8)))
    for result, expected in zip(interpret(program, x, y), (x @ y @ x @ y, x @ x.T @ x @ x.T), strict=True):
        np.testing.assert_array_equal(result, expected)
