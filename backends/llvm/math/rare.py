"""Branches around what rare arguments need: a vector takes the short way if all its lanes may."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I1, I32, I64, Code, element, literal, mangle, shaped


def unless_any(
    code: Code, rare: ll.Value, fast: tuple[ll.Value, ...], otherwise: Callable[[], tuple[ll.Value, ...]]
) -> tuple[ll.Value, ...]:
    """Returns `fast`, but if the condition holds for any lane, the result of the code that `otherwise` emits."""
    builder = code.builder
    if isinstance(rare.type, ll.VectorType):
        rare = code.call(f"llvm.vector.reduce.or.{mangle(rare.type)}", I1, rare)
    before = builder.block
    with builder.if_then(rare, likely=False):
        exact = otherwise()
        after = builder.block
    pairs = zip(fast, exact, strict=True)
    return tuple(code.phi([(one, before), (other, after)]) for one, other in pairs)


def if_within(
    code: Code, x: ll.Value, limit: float, fast: Callable[[], ll.Value], otherwise: Callable[[], ll.Value]
) -> ll.Value:
    """Returns what `fast` computes if no lane of the vector x is a NaN or larger than `limit` in magnitude; if not,
    what `otherwise` does."""
    with code.builder.if_else(_within(code, x, limit), likely=True) as (near, far):
        with near:
            short, after_short = fast(), code.builder.block
        with far:
            long, after_long = otherwise(), code.builder.block
    return code.phi([(short, after_short), (long, after_long)])


def _within(code: Code, x: ll.Value, limit: float) -> ll.Value:
    """Compares magnitudes as integers, in which order NaN is above all numbers: the largest of several registers at
    each place first."""
    integer = I64 if element(x.type) == F64 else I32
    magnitude = code.both(code.bits(x, integer), (1 << (integer.width - 1)) - 1)
    while (lanes := magnitude.type.count) * integer.width > 8 * code.target.vector_bytes:
        low, high = (tuple(range(at, at + lanes // 2)) for at in (0, lanes // 2))
        magnitude = code.intrinsic("llvm.smax", code.shuffle(magnitude, low), code.shuffle(magnitude, high))
    bound = code.bits(literal(shaped(element(x.type), magnitude.type), limit), integer)
    within = code.icompare("<=", magnitude, bound)
    return code.call(f"llvm.vector.reduce.and.{mangle(within.type)}", I1, within)
