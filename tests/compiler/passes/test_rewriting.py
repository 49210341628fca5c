"""Local rewrites: how an op is replaced, the order in which ops are visited, and that rewriting ends."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from trivium.compiler.passes.rewriting import PatternSet, replace, rewrite_to_fixpoint, users_of
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.ir.location import FileLocation
from trivium.ir.types import I32, tensor


def chain(*kinds: type) -> Module:
    """A chain of ops with one operand."""

    def body(b, x):
        for kind in kinds:
            x = b.add(kind(x))
        return x

    return program_of([tensor(2)], body)


def names(module: Module) -> list[str]:
    return [op.NAME.rpartition(".")[2] for op in module.main.body.block][:-1]


def test_the_first_pattern_that_matches_is_taken() -> None:
    patterns, asked = PatternSet(), []

    @patterns.pattern(ops.Abs, ops.Negate)
    def never(op):
        asked.append("never")

    @patterns.pattern(ops.Negate)
    def to_sine(op):
        asked.append("sine")
        return ops.Sine(op.operand)

    @patterns.pattern(ops.Negate)
    def to_cosine(op):
        raise AssertionError("another one matched before")

    module = chain(ops.Negate)
    assert rewrite_to_fixpoint(module, patterns)
    assert names(module) == ["sine"]
    assert asked == ["never", "sine"]


def test_sets_join_without_changing_each_other() -> None:
    first, second = PatternSet(), PatternSet()
    first.pattern(ops.Abs)(lambda op: op.operand)
    second.pattern(ops.Abs)(lambda op: None)
    second.pattern(ops.Sine)(lambda op: ops.Cosine(op.operand))
    both = PatternSet(first, second)
    both.pattern(ops.Abs)(lambda op: None)
    assert [len(both.patterns[kind]) for kind in (ops.Abs, ops.Sine)] == [3, 1]
    assert (len(first.patterns[ops.Abs]), len(second.patterns[ops.Abs])) == (1, 1)
    module = chain(ops.Abs, ops.Sine)
    assert rewrite_to_fixpoint(module, both)
    assert names(module) == ["cosine"]


def test_nothing_matches() -> None:
    module = chain(ops.Abs, ops.Sine)
    before = str(module)
    assert not rewrite_to_fixpoint(module, PatternSet())
    assert str(module) == before


def test_patterns_that_undo_each_other_end() -> None:
    patterns, count = PatternSet(), [0]

    @patterns.pattern(ops.Sine, ops.Cosine)
    def turn(op):
        count[0] += 1
        return (ops.Cosine if isinstance(op, ops.Sine) else ops.Sine)(op.operand)

    module = chain(ops.Sine, ops.Abs)
    budget = 3 * (len(list(module.walk())) + 1)
    assert rewrite_to_fixpoint(module, patterns, limit=3)
    assert count[0] == budget
    module.verify()
    assert names(module) in (["sine", "abs"], ["cosine", "abs"])


def test_a_pattern_that_grows_forever_ends() -> None:
    patterns = PatternSet()
    patterns.pattern(ops.Sine)(lambda op: ops.Sine(ops.Abs(op.operand).result))
    module = chain(ops.Sine)
    size = len(list(module.walk()))
    assert rewrite_to_fixpoint(module, patterns, limit=2)
    assert names(module) == ["abs"] * (2 * (size + 1)) + ["sine"]


def test_new_operands_are_inserted_before_the_op_and_rewritten_too() -> None:
    patterns = PatternSet()
    patterns.pattern(ops.Power)(lambda op: ops.Exponential(ops.Multiply(op.rhs, ops.Log(op.lhs).result).result))
    patterns.pattern(ops.Log)(lambda op: ops.Negate(op.operand))
    module = program_of([tensor(2)] * 2, lambda b, x, y: b.add(ops.Power(x, y)))
    rewrite_to_fixpoint(module, patterns)
    module.verify()
    assert names(module) == ["negate", "multiply", "exponential"]


def test_an_operand_that_two_new_ops_share_is_inserted_once() -> None:
    def shared(op):
        half = ops.Sine(op.operand).result
        return ops.Add(ops.Abs(half).result, half)

    patterns = PatternSet()
    patterns.pattern(ops.Negate)(shared)
    module = chain(ops.Negate)
    rewrite_to_fixpoint(module, patterns)
    module.verify()
    assert sorted(names(module)) == ["abs", "add", "sine"]


def test_ops_that_were_erased_are_not_looked_at() -> None:
    """An op that a pattern erases in addition is gone, although it was still to be visited."""
    patterns = PatternSet()

    @patterns.pattern(ops.Abs)
    def take_along(op):
        (user,) = op.result.users
        replace(user, (op.operand,))
        return op.operand

    patterns.pattern(ops.Sine)(lambda op: ops.Cosine(op.operand))
    module = chain(ops.Abs, ops.Sine)
    rewrite_to_fixpoint(module, patterns)
    assert names(module) == []


def test_regions_are_rewritten_in_place() -> None:
    def branch(b):
        return b.add(ops.Abs(b.add(ops.Constant(np.ones(2, np.float32)))))

    patterns = PatternSet()
    patterns.pattern(ops.Abs)(lambda op: op.operand)
    module = program_of(
        [tensor(of=I32)],
        lambda b, which: b.add(ops.Case(which, [region([], branch) for _ in "ab"], results=[tensor(2)])),
    )
    assert rewrite_to_fixpoint(module, patterns)
    module.verify()
    assert not [op for op in module.walk() if isinstance(op, ops.Abs)]


def test_a_replacement_takes_the_location_and_name_of_the_op() -> None:
    module = chain(ops.Negate)
    (op, _) = module.main.body.block
    op.location = FileLocation("model.py", 3, 1)
    op.results[0].name_hint = "y"
    (inserted,) = replace(op, (ops.Abs(op.operands[0]).result,))
    assert inserted.location == op.location
    assert inserted.results[0].name_hint == "y"
    assert op.block is None


def test_a_value_of_another_type_is_refused() -> None:
    (op, _) = chain(ops.Negate).main.body.block
    with pytest.raises(AssertionError, match="of type tensor<2xf32> is replaced by a value of type tensor<2xi32>"):
        replace(op, (ops.Convert(op.operands[0], result=tensor(2, of=I32)).result,))


def test_users_of_values() -> None:
    module = program_of([tensor(2)], lambda b, x: b.add(ops.Add(b.add(ops.Abs(x)), x)))
    absolute, add, end = module.main.body.block
    found: list[Operation] = list(users_of([module.main.arguments[0], add.results[0]]))
    assert {absolute, add, end} == set(found)
