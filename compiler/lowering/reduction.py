"""Folds: `reduce`, and sliding windows. The region becomes the combiner of a reduction loop, by name if it is a single
associative operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.compiler.kernel import Block, Buffer, Register
from trivium.compiler.kernel.digits import split_indices
from trivium.compiler.kernel.ops import OPERATIONS
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.elementwise import converted
from trivium.compiler.lowering.index import Index, Indices, Variable, every_place, fresh, indices_of
from trivium.compiler.lowering.rules import element
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair
from trivium.ir import ops
from trivium.ir.core import Region
from trivium.ir.declare import Op
from trivium.ir.interpreter import Interpreter
from trivium.ir.ops.windows import Window, windows_of


@element(ops.Reduce)
def reduce(ctx: LoweringContext, op: ops.Reduce, indices: Indices) -> list[Scalar]:
    shape = op.inputs[0].type.shape
    variables = ctx.reduced.get(op) or fresh([shape[dimension] for dimension in sorted(op.dimensions)])
    inits = [ctx.element(init) for init in op.init_values]

    def terms(inner: Indices) -> list[Scalar]:
        at = _folded_place(op, indices, inner)
        return [ctx.element(operand, at) for operand in op.inputs]

    return fold(ctx, op.body, inits, variables, terms)


def _folded_place(op: ops.Reduce, indices: Indices, folded: Indices) -> Indices:
    """Returns the indices of the inputs' elements that are folded into the result at `indices`."""
    inner = dict(zip(sorted(op.dimensions), folded, strict=True))
    kept = iter(indices)
    return tuple(inner[d] if d in inner else next(kept) for d in range(op.inputs[0].type.rank))


def reduce_together(ctx: LoweringContext, folds: Sequence[tuple[ops.Reduce, Indices]]) -> None:
    """Emits several reductions over the same variables (`ctx.reduced`) in one loop, so that elements that they share
    are read once."""
    kinds = [[argument.type.element_type for argument in op.body.arguments[: len(op.inputs)]] for op, _ in folds]
    every = [kind for some in kinds for kind in some]
    inits = [
        widened(ctx, ctx.element(init), kind)
        for (op, _), some in zip(folds, kinds, strict=True)
        for init, kind in zip(op.init_values, some, strict=True)
    ]
    variables = [v for v in ctx.reduced[folds[0][0]] if v.extent != 1]
    loop = ctx.b.reduction(*[v.extent for v in variables], inits=flat(inits), combiner=_joint_block(ctx, folds, kinds))
    with ctx.inside(loop, variables):
        terms: list[Scalar] = []
        for (op, indices), some in zip(folds, kinds, strict=True):
            at = _folded_place(op, indices, indices_of(ctx.reduced[op]))
            terms += _widened(ctx, [ctx.element(operand, at) for operand in op.inputs], some)
        loop.yield_(*flat(terms))
    split_indices(loop.loop)
    results = iter(grouped(loop.results, every))
    for op, indices in folds:
        for result in op.results:
            ctx.know(result, indices, next(results))


def _joint_block(
    ctx: LoweringContext, folds: Sequence[tuple[ops.Reduce, Indices]], kinds: Sequence[Sequence[Any]]
) -> Block:
    """Returns a block with the regions of several reductions side by side."""
    every = [kind for some in kinds for kind in some]
    dtypes = [dtype_of(kind) for kind in (*every, *every) for _ in range(1 + is_pair(kind))]
    with ctx.block(ctx.b.block(*dtypes)) as block:
        scalars = grouped(block.parameters, [*every, *every])
        first, combined = 0, []
        for (op, _), some in zip(folds, kinds, strict=True):
            last = first + len(some)
            totals, terms = scalars[first:last], scalars[len(every) + first : len(every) + last]
            combined += ctx.region(op.body, [*totals, *terms])
            first = last
        block.yields = flat(combined)
    return block


Terms = Callable[[Indices], list[Scalar]]
"""What is folded, at given indices of the folded dimensions."""


def fold(
    ctx: LoweringContext, body: Region, inits: list[Scalar], variables: Sequence[Variable], terms: Terms
) -> list[Scalar]:
    """Folds the results of `terms`, for all values of `variables`, onto `inits` with the region `body`. The region may
    compute in a wider type than that of its inputs."""
    kinds = [argument.type.element_type for argument in body.arguments[: len(inits)]]
    inits = [widened(ctx, init, kind) for init, kind in zip(inits, kinds, strict=True)]
    looped = [v for v in variables if v.extent != 1]
    if ctx.written_out or not looped:
        for at in every_place([v.extent for v in variables]):
            inits = ctx.region(body, [*inits, *_widened(ctx, terms(at), kinds)])
        return inits
    term = lambda: _widened(ctx, terms(indices_of(variables)), kinds)  # noqa: E731
    if not commutes(body):
        return _fold_in_order(ctx, body, inits, looped, term)
    name = combiner_name(body)
    combiner = name if name is not None and not is_pair(kinds[0]) else combiner_block(ctx, body, kinds)
    loop = ctx.b.reduction(*[v.extent for v in looped], inits=flat(inits), combiner=combiner)
    with ctx.inside(loop, looped):
        loop.yield_(*flat(term()))
    split_indices(loop.loop)
    return grouped(loop.results, kinds)


def _fold_in_order(
    ctx: LoweringContext,
    body: Region,
    inits: list[Scalar],
    variables: Sequence[Variable],
    term: Callable[[], list[Scalar]],
) -> list[Scalar]:
    """Folds like `fold`, in order, because the order of the terms matters."""
    kinds = [argument.type.element_type for argument in body.arguments[: len(inits)]]
    loop = ctx.b.sequential(*[v.extent for v in variables], inits=flat(inits))
    with ctx.inside(loop, variables):
        loop.yield_(*flat(ctx.region(body, [*grouped(loop.carried, kinds), *term()])))
    return grouped(loop.results, kinds)


def commutes(body: Region) -> bool:
    """Whether a combiner may take its terms in any order, as reduction loops do. StableHLO promises only that it is
    associative, as are a product of matrices and the choice of the first of several greatest elements. For most regions
    the form does not show whether they commute (as for argmax), so they are tried on small numbers, with ties."""
    if combiner_name(body) is not None:
        return True
    function = Interpreter().callable(body)
    if not function.elementwise or body.free_values():
        return False
    half = len(body.arguments) // 2
    samples = [_sample(argument.type.dtype, seed) for seed, argument in enumerate(body.arguments)]
    with np.errstate(all="ignore"):
        pairs = zip(function.map(*samples), function.map(*samples[half:], *samples[:half]), strict=True)
        return all(np.allclose(*(x.astype(np.complex128) for x in pair), rtol=1e-2, equal_nan=True) for pair in pairs)


def _sample(dtype: np.dtype, seed: int) -> np.ndarray:
    """Returns small numbers of a type, the same for the same seed; complex ones with imaginary parts."""
    real, imaginary = np.random.default_rng(seed).integers(-2, 3, (2, 64))
    if dtype.kind in "bu":
        return (real > 0).astype(dtype)
    return (real + 1j * imaginary).astype(dtype) if dtype.kind == "c" else real.astype(dtype)


def combiner_name(body: Region) -> str | None:
    """Returns the name of the operation if a region is a single associative operation on its two arguments, else
    None."""
    op = body.block.first
    if op is None or not isinstance(op, Op) or op.next is not body.block.last or body.terminator.operands != op.results:
        return None
    if len(body.arguments) != 2 or set(op.operands) != set(body.arguments):
        return None
    known = OPERATIONS.get(op.short_name())
    return known.name if known is not None and known.associative else None


def combiner_block(ctx: LoweringContext, body: Region, kinds: Sequence[Any]) -> Block:
    """Returns a region as a block of scalars; its parameters are the accumulated values, then the terms."""
    dtypes = [dtype_of(kind) for kind in (*kinds, *kinds) for _ in range(1 + is_pair(kind))]
    with ctx.block(ctx.b.block(*dtypes)) as block:
        block.yields = flat(ctx.region(body, grouped(block.parameters, [*kinds, *kinds])))
    return block


def combine_into(
    ctx: LoweringContext, body: Region, targets: Sequence[tuple[Buffer, Indices]], values: Sequence[Scalar]
) -> None:
    """Combines `values` into elements of buffers with the region `body`. Its arguments, which have the buffers' element
    types, are the old elements, then the values."""
    kinds = [argument.type.element_type for argument in body.arguments[: len(targets)]]
    name = combiner_name(body)
    combiner = name if name is not None and not is_pair(kinds[0]) else combiner_block(ctx, body, kinds)
    ctx.update(targets, _widened(ctx, values, kinds), combiner)


def flat(scalars: Sequence[Scalar]) -> list[Register]:
    """Returns the registers of scalars, some of which may be pairs."""
    return [part for scalar in scalars for part in (scalar if isinstance(scalar, tuple) else (scalar,))]


def grouped(registers: Sequence[Register], kinds: Sequence[Any]) -> list[Scalar]:
    """Groups registers into scalars of these element types."""
    rest = iter(registers)
    return [(next(rest), next(rest)) if is_pair(kind) else next(rest) for kind in kinds]


def widened(ctx: LoweringContext, scalar: Scalar, kind: Any) -> Scalar:
    """Converts a scalar to the type that a region computes in."""
    has = scalar[0].dtype if isinstance(scalar, tuple) else scalar.dtype
    return scalar if has == dtype_of(kind) else converted(ctx, scalar, kind)


def _widened(ctx: LoweringContext, scalars: Sequence[Scalar], kinds: Sequence[Any]) -> list[Scalar]:
    return [widened(ctx, scalar, kind) for scalar, kind in zip(scalars, kinds, strict=True)]


@element(ops.ReduceWindow, repeats=True)
def reduce_window(ctx: LoweringContext, op: ops.ReduceWindow, indices: Indices) -> list[Scalar]:
    """Padding counts as the initial value."""
    windows = windows_of(op.window_dimensions, op.window_strides, op.padding, op.base_dilations, op.window_dilations)
    variables = fresh(op.window_dimensions)
    inits = [ctx.element(init) for init in op.init_values]
    shape = op.inputs[0].type.shape
    kinds = [argument.type.element_type for argument in op.body.arguments[: len(inits)]]
    inits = _widened(ctx, inits, kinds)

    def terms(offsets: Indices) -> list[Scalar]:
        inside, at = window_place(ctx, windows, shape, indices, offsets)
        return guarded(ctx, inside, lambda: _widened(ctx, [ctx.element(x, at) for x in op.inputs], kinds), inits)

    return fold(ctx, op.body, inits, variables, terms)


def guarded(ctx: LoweringContext, inside: Register | None, then: Any, otherwise: list[Scalar]) -> list[Scalar]:
    """Returns `then()` if `inside` holds (None: always), else `otherwise`; both are lists of scalars."""
    if inside is None:
        return then()
    with ctx.block(ctx.b.if_(inside)) as branch:
        scalars = then()
        branch.yield_(*flat(scalars))
    with ctx.block(branch.otherwise()):
        branch.yield_(*flat(otherwise))
    results = iter(branch.results)
    return [(next(results), next(results)) if isinstance(s, tuple) else next(results) for s in scalars]


def window_place(
    ctx: LoweringContext, windows: Sequence[Window], shape: Sequence[int], indices: Indices, offsets: Indices
) -> tuple[Register | None, Indices]:
    """Returns whether there is an element at an offset in a window (None: always), and where it is."""
    inside: Register | None = None
    at: list[Index] = []
    for window, extent, index, offset in zip(windows, shape, indices, offsets, strict=True):
        place = index * window.stride + offset * window.dilation - window.low
        limit = (extent - 1) * window.base_dilation
        tests = []
        if place.range[0] < 0:
            tests.append(ctx.b.compare("GE", ctx.position(place), 0))
        if place.range[1] > limit:
            tests.append(ctx.b.compare("LE", ctx.position(place), limit))
        if window.base_dilation != 1:
            tests.append(ctx.b.compare("EQ", ctx.b.remainder(ctx.position(place), window.base_dilation), 0))
        for test in tests:
            inside = test if inside is None else ctx.b.apply("and", inside, test)
        at.append(place // window.base_dilation)
    return inside, tuple(at)
