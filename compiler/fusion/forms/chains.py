"""Finds chains: products of which one factor, the weights, is computed element by element from one or two products, by
an exponential of scores. So are the gradients of attention, which recompute the weights from the scores of a row and
the logarithm of their sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trivium.compiler.costs import is_reduction
from trivium.compiler.fusion.demands import plain_variables
from trivium.compiler.fusion.forms.softmax import (
    LONGEST,
    Factor,
    above,
    factor_of,
    indices_of_members,
    is_plain,
    named_loops,
    side_of,
)
from trivium.compiler.lowering import INDEXING, is_elementwise
from trivium.compiler.lowering.contraction import Loops, loops_of
from trivium.compiler.lowering.index import Index, Indices, Variable, fresh, indices_of
from trivium.ir import ops
from trivium.ir.core import Operation, Value

MOST = 2
"""The most products that weights are computed from: a thread has their sums in registers."""


@dataclass(frozen=True, eq=False)
class Product:
    """A product of rows and keys, which sums over `depth`."""

    op: ops.DotGeneral
    depth: tuple[Variable, ...]
    lhs: Factor
    rhs: Factor


@dataclass(frozen=True, eq=False)
class Found:
    """A chain: the loops of the kernel, the products, the ops `members` that compute the weights from them, and the
    other factor of the last product. `key` is the loop over the weights of a row. `at` has the indices of every value
    of the members."""

    weights: Value
    members: frozenset[Operation]
    at: Mapping[Value, Indices]
    products: tuple[Product, ...]
    batch: tuple[Variable, ...]
    rows: tuple[Variable, ...]
    features: tuple[Variable, ...]
    key: Variable
    values: Factor


def find(last: Operation, space: Sequence[Variable], fits: Callable[[Found], bool]) -> Found | None:
    """Returns the chain that ends with `last`, whose result has the loops `space`. All that uses what its members
    compute must be chains, too, which fit: then nothing of the weights' size is stored."""
    found = _chain(last, space)
    if found is None or not fits(found):
        return None
    ends = _ends(product.op for product in found.products)
    others = [end for end in ends or () if end is not last]
    chains = [_chain(end, fresh(end.result.type.shape)) for end in others]
    return found if ends and all(chain is not None and fits(chain) for chain in chains) else None


def _chain(last: Operation, space: Sequence[Variable]) -> Found | None:
    if not isinstance(last, ops.DotGeneral) or not is_plain(last):
        return None
    key = [loop.extent for loop in loops_of(last).loops.values() if loop.role == "k" and loop.extent > 1]
    for number in range(2 if len(key) == 1 else 0):
        row = Variable(key[0])
        named = named_loops(loops_of(last), indices_of(space), [row])
        found = _weighed(last, number, named, row)
        if found is not None:
            return found
    return None


def _weighed(last: ops.DotGeneral, number: int, named: dict[str, Index], key: Variable) -> Found | None:
    """Returns the chain whose weights are an operand of `last`."""
    weights, loops = last.operands[number], loops_of(last)
    computed = list(above(weights))
    products = _products(computed, weights)
    if not 1 <= len(products) <= MOST or len(computed) >= LONGEST or not all(map(is_plain, products)):
        return None
    members = _dependent(products, last, computed)
    if members is None or not any(isinstance(op, ops.Exponential) for op in members):
        return None
    at = indices_of_members(members, {weights: side_of(loops, number, named)}, key, last)
    if at is None:
        return None
    batch, rows, features = (_variables(loops, named, role) for role in ("batch", "mn"[number], "nm"[number]))
    found = [_product(op, at[op.result], {*batch}, {*rows}, key) for op in products]
    if any(one is None for one in found):
        return None
    values = factor_of(last.operands[1 - number], side_of(loops, 1 - number, named))
    return Found(weights, frozenset(members), at, tuple(filter(None, found)), batch, rows, features, key, values)


def _products(computed: Iterable[Operation], weights: Value) -> list[ops.DotGeneral]:
    """Returns the products that are as large as what is computed from them."""
    return [op for op in computed if isinstance(op, ops.DotGeneral) and op.result.type.size == weights.type.size]


def _dependent(products: Sequence[Operation], last: Operation, kept: Iterable[Operation]) -> list[Operation] | None:
    """Returns the ops that depend on products, and these, in the order of the block; None if one of them is neither
    elementwise nor moves elements, or if some are in other blocks."""
    found, kept, block = dict.fromkeys(products), set(kept), last.block
    if block is None or any(op.block is not block for op in products):
        return None
    ordered = list[Operation]()
    op: Operation | None = next(op for op in block if op in found)
    while op is not None and op is not last:
        if op in found or (op in kept and any(operand.defining_op in found for operand in op.operands)):
            found[op] = None
            ordered.append(op)
            if is_reduction(op):
                return None
        op = op.next
    return ordered


def _variables(loops: Loops, at: Mapping[str, Index], role: str) -> tuple[Variable, ...]:
    return tuple(v for name, loop in loops.loops.items() if loop.role == role and (v := at[name].variable))


def _product(
    op: ops.DotGeneral, at: Indices, batch: set[Variable], rows: set[Variable], key: Variable
) -> Product | None:
    """Returns a product whose result is used at the indices `at`, if it has the same loops."""
    if plain_variables(at) is None:
        return None
    loops = loops_of(op)
    depth = tuple(Variable(loop.extent) for loop in loops.loops.values() if loop.role == "k" and loop.extent > 1)
    named = named_loops(loops, at, depth)
    one, other = ({*_variables(loops, named, role)} for role in "mn")
    if {*_variables(loops, named, "batch")} != batch or {frozenset(one), frozenset(other)} != {
        frozenset(rows),
        frozenset({key}),
    }:
        return None
    sides = (0, 1) if other == {key} else (1, 0)
    lhs, rhs = (factor_of(op.operands[side], side_of(loops, side, named)) for side in sides)
    return Product(op, depth, lhs, rhs)


def _ends(products: Iterable[Operation]) -> list[ops.DotGeneral] | None:
    """Returns the products that use what is computed from `products`, element by element; None if anything else uses
    that."""
    pending, seen, ends = list(products), set[Operation](), dict[ops.DotGeneral, None]()
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        if len(seen) > LONGEST:
            return None
        for user in op.results[0].users:
            if isinstance(user, ops.DotGeneral):
                ends[user] = None
            elif user.block is op.block and len(user.results) == 1 and (type(user) in INDEXING or is_elementwise(user)):
                pending.append(user)
                # What else it is computed from has the same users, and perhaps others.
                pending += _products(above(user.results[0]), op.results[0])
            else:
                return None
    return list(ends)
