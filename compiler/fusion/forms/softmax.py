"""Finds attention: a product of which one factor is the softmax of scores, which are computed from another product, and
which nothing else needs, except greatest scores and denominators. How each value is addressed follows from the loops of
the last product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivium.compiler.costs import element_cost, is_marked_contraction, is_reduction
from trivium.compiler.fusion.demands import Opaque, plain_variables, reads
from trivium.compiler.lowering import INDEXING, is_elementwise
from trivium.compiler.lowering.contraction import Loops, loops_of, rounds
from trivium.compiler.lowering.index import Index, Indices, Variable, constant, indices_of, variable
from trivium.ir import ops
from trivium.ir.core import Operation, OpResult, Value
from trivium.ir.types import F32, is_float

LONGEST = 60
"""The number of ops after which a search gives up."""

CHEAP = 8.0
"""The cost of one op on the way to a factor, up to which it is computed whenever the factor is read."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor of a product: `source` at the indices `at`, from which the ops `before` compute `value` at `place`."""

    value: Value
    place: Indices
    source: Value
    at: Indices
    before: tuple[Operation, ...]


@dataclass(frozen=True, eq=False)
class Softmax:
    """The ops `members` compute weights from the sums of the product `scores`. `at` has the indices of every value."""

    weights: Value
    scores: ops.DotGeneral
    score: Value
    """What the exponentials are computed from, before its greatest value is subtracted."""
    greatest: ops.Reduce
    total: ops.Reduce
    divide: ops.Divide
    members: frozenset[Operation]
    at: Mapping[Value, Indices]


@dataclass(frozen=True, eq=False)
class Found:
    """Attention: the loops of the kernel, and its three factors. `key` is the loop over the scores of a row."""

    softmax: Softmax
    batch: tuple[Variable, ...]
    rows: tuple[Variable, ...]
    features: tuple[Variable, ...]
    key: Variable
    depth: tuple[Variable, ...]
    lhs: Factor
    rhs: Factor
    values: Factor


def find(last: Operation, space: Sequence[Variable]) -> Found | None:
    """Returns the attention that ends with `last`, whose result has the loops `space`."""
    if not isinstance(last, ops.DotGeneral) or not is_plain(last):
        return None
    key = [loop.extent for loop in loops_of(last).loops.values() if loop.role == "k" and loop.extent > 1]
    for number, operand in enumerate(last.operands if len(key) == 1 else ()):
        row = Variable(key[0])
        named = named_loops(loops_of(last), indices_of(space), [row])
        softmax = _softmax(last, operand, side_of(loops_of(last), number, named), row)
        found = _joined(last, number, named, softmax, row) if softmax is not None else None
        if found is not None:
            return found
    return None


def is_plain(op: ops.DotGeneral) -> bool:
    """Whether an op sums products of f32, as they are."""
    kinds = {value.type.element_type for value in (*op.operands, op.result)}
    return kinds == {F32} and is_marked_contraction(op) and not any(rounds(op, side) for side in ("lhs", "rhs"))


def named_loops(loops: Loops, result: Indices, inner: Sequence[Variable]) -> dict[str, Index]:
    """Returns the index of each loop of a product, at these indices of the result; `inner` are the loops of the sum
    that have more than one iteration."""
    named = {name: index for (name,), index in zip(loops.result, result, strict=True)}
    rest = iter(inner)
    for name, loop in loops.loops.items():
        if name not in named:
            named[name] = constant(0) if loop.extent == 1 else variable(next(rest))
    return named


def side_of(loops: Loops, number: int, named: Mapping[str, Index]) -> Indices:
    """Returns the indices of an operand of a product."""
    names = {loop: name for name, loop in loops.loops.items()}
    subscripts = (loops.lhs, loops.rhs)[number]
    return tuple(named[names[subscript.position.sole]] for subscript in subscripts)  # type: ignore[index]


def _joined(last: ops.DotGeneral, number: int, named: dict[str, Index], found: Softmax, key: Variable) -> Found | None:
    """Returns the whole, if both products have the same loops."""
    first, scores = loops_of(found.scores), found.at[found.scores.result]
    depth = tuple(Variable(loop.extent) for loop in first.loops.values() if loop.role == "k" and loop.extent > 1)
    inner = named_loops(first, scores, depth)

    def variables(loops: Loops, at: Mapping[str, Index], role: str) -> list[Variable]:
        return [v for name, loop in loops.loops.items() if loop.role == role and (v := at[name].variable)]

    batch, one, other = (variables(first, inner, role) for role in ("batch", "m", "n"))
    outer, mine, features = (variables(loops_of(last), named, role) for role in ("batch", "mn"[number], "nm"[number]))
    sides = (0, 1) if other == [key] else (1, 0)
    rows = one if other == [key] else other
    if [key] not in (one, other) or set(rows) != set(mine) or set(batch) != set(outer):
        return None
    lhs, rhs = (factor_of(found.scores.operands[side], side_of(first, side, inner)) for side in sides)
    values = factor_of(last.operands[1 - number], side_of(loops_of(last), 1 - number, named))
    return Found(found, tuple(batch), tuple(rows), tuple(features), key, depth, lhs, rhs, values)


def factor_of(value: Value, place: Indices) -> Factor:
    """Looks through ops that only move elements, and cheap ones that nothing else needs."""
    source, at, before = value, place, list[Operation]()
    while isinstance(source, OpResult):
        op = source.defining_op
        inputs = [operand for operand in op.operands if not _is_splat(operand)]
        if type(op) in INDEXING:
            before.append(op)
            source, at = op.operands[0], INDEXING[type(op)](op, at)
        elif is_elementwise(op) and not op.regions and _only_input(op, inputs) and element_cost(op) <= CHEAP:
            before.append(op)
            source = inputs[0]
        else:
            break
    return Factor(value, place, source, at, tuple(before))


def _only_input(op: Operation, inputs: Sequence[Value]) -> bool:
    """Whether an op computes floats from one array of floats, which is not a larger one. Only a smaller one is read
    again for other users."""
    floats = all(is_float(value.type.element_type) for value in (*inputs, *op.results))
    if len(inputs) != 1 or not floats or len(op.results) != 1:
        return False
    (result,), widths = op.results, [value.type.dtype.itemsize for value in (*inputs, *op.results)]
    return widths[0] < widths[1] or (widths[0] == widths[1] and len(result.users) == 1)


def _is_splat(value: Value) -> bool:
    op = value.defining_op
    return isinstance(op, ops.Constant) and op.value.is_splat


# Softmax


def _softmax(last: Operation, weights: Value, at: Indices, key: Variable) -> Softmax | None:
    """Returns the softmax over `key` that computes `weights`, which are used at the indices `at`."""
    computed = list(above(weights))
    products = [op for op in computed if isinstance(op, ops.DotGeneral) and op.result.type.size == weights.type.size]
    if len(products) != 1 or len(computed) >= LONGEST or not is_plain(products[0]):
        return None
    members = _between(products[0], last, computed)
    indices = indices_of_members(list(members), {weights: at}, key, last)
    if indices is None:
        return None
    shared = {value for op in members for value in op.results if not members.keys() >= set(value.users) - {last}}
    # Other ops may read what there is for a whole row.
    if any(key in index.variables() for value in shared for index in indices[value]):
        return None
    return _pattern(weights, products[0], frozenset(members), indices)


def above(value: Value) -> Iterator[Operation]:
    """Yields the ops that a value is computed from, up to products and whatever is no part of a softmax."""
    pending, seen = [value], set[Operation]()
    while pending and len(seen) < LONGEST:
        op = pending.pop().defining_op
        if op is not None and op not in seen:
            seen.add(op)
            yield op
            if type(op) in INDEXING or is_elementwise(op) or is_reduction(op):
                pending += op.operands


def _between(first: Operation, last: Operation, above: Sequence[Operation]) -> dict[Operation, None]:
    """Returns those of the ops that depend on `first`, and itself, in the order of the block."""
    found, kept, op = {first: None}, set(above), first.next
    while op is not None and op is not last:
        if op in kept and any(operand.defining_op in found for operand in op.operands):
            found[op] = None
        op = op.next
    return found


def indices_of_members(
    members: Sequence[Operation], at: dict[Value, Indices], key: Variable, last: Operation
) -> dict[Value, Indices] | None:
    """Returns the indices at which each value that the members use is used; None if a member's result is used at
    several."""
    own = {value for op in members for value in op.results}
    for op in reversed(members):
        if len(op.results) != 1 or op.results[0] not in at:
            return None
        for operand, place in _read(op, at[op.results[0]], key):
            if operand in own and at.setdefault(operand, place) != place:
                return None
    return at


def _read(op: Operation, at: Indices, key: Variable) -> Iterator[tuple[Value, Indices]]:
    if is_reduction(op):
        yield op.inputs[0], of_row(op, at, key)
    elif not isinstance(op, ops.DotGeneral):
        yield from ((value, place) for value, place in reads(op, at) if not isinstance(place, Opaque))


def of_row(op: ops.Reduce, at: Indices, key: Variable) -> Indices:
    """Returns the indices of a reduction's input, of which `key` runs along the row."""
    kept, shape = iter(at), op.inputs[0].type.shape
    along = [constant(0) if extent == 1 else variable(key) for extent in shape]
    return tuple(along[d] if d in op.dimensions else next(kept) for d in range(len(shape)))


def _pattern(
    weights: Value, scores: ops.DotGeneral, members: frozenset[Operation], at: dict[Value, Indices]
) -> Softmax | None:
    """Recognizes x = exp(score - greatest) / total."""
    divide = _moved(weights).defining_op
    if not isinstance(divide, ops.Divide):
        return None
    exponential, total = _moved(divide.lhs).defining_op, _total(divide.rhs, members)
    if not isinstance(exponential, ops.Exponential) or total is None:
        return None
    difference = _moved(exponential.operand).defining_op
    if not isinstance(difference, ops.Subtract) or _moved(total.inputs[0]).defining_op is not exponential:
        return None
    greatest = _greatest(difference.rhs)
    if greatest is None or greatest.inputs[0] is not difference.lhs:
        return None
    reductions = {op for op in members if is_reduction(op)}
    plain = all(
        plain_variables(at[value]) is not None for value in (scores.result, difference.lhs, greatest.results[0])
    )
    kinds = {value.type.element_type for value in (weights, difference.lhs, exponential.result)}
    if reductions != {greatest, total} or not plain or kinds != {F32}:
        return None
    return Softmax(weights, scores, difference.lhs, greatest, total, divide, members, at)


def _moved(value: Value) -> Value:
    """Looks through ops that only move elements."""
    while (op := value.defining_op) is not None and type(op) in INDEXING:
        value = op.operands[0]
    return value


def _folds(value: Value, kind: type, init: Callable[[np.ndarray], bool]) -> ops.Reduce | None:
    """Returns the reduction of one kind that a value is a result of."""
    op = value.defining_op
    if not is_reduction(op) or len(op.inputs) != 1 or not init(_number(op.init_values[0])):
        return None
    block = op.body.block
    (result,) = block.terminator.operands
    combine = result.defining_op
    fits = combine is not None and type(combine) is kind and set(combine.operands) == set(block.arguments)
    return op if fits else None


def _number(value: Value) -> np.ndarray:
    """Returns the elements of a constant; NaN for anything else."""
    op = value.defining_op
    return op.value.array.flat[:1].astype(np.float64) if isinstance(op, ops.Constant) else np.array([np.nan])


def _total(value: Value, members: frozenset[Operation]) -> ops.Reduce | None:
    """Returns the sum that a divisor is computed from, and nothing else of the softmax."""
    pending, found = [value], set[ops.Reduce]()
    while pending:
        op = pending.pop().defining_op
        if op is None or op not in members:
            continue
        if is_reduction(op):
            found.add(op)
        elif isinstance(op, ops.DotGeneral | ops.Exponential):
            return None
        else:
            pending += op.operands
    return _folds(found.pop().results[0], ops.Add, lambda init: bool(init == 0)) if len(found) == 1 else None


def _greatest(value: Value) -> ops.Reduce | None:
    """Returns the maximum that is subtracted: as it is, or zero where it is -inf."""
    value = _moved(value)
    select = value.defining_op
    if isinstance(select, ops.Select) and _number(select.on_true)[0] == 0:
        compare = _moved(select.pred).defining_op
        if not isinstance(compare, ops.Compare) or compare.comparison_direction.value != "EQ":
            return None
        other = _moved(select.on_false)
        if _moved(compare.lhs) is not other or not np.isneginf(_number(compare.rhs)[0]):
            return None
        value = other
    return _folds(value, ops.Maximum, lambda init: bool(np.isneginf(init)))
