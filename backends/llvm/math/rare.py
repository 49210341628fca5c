"""Branches around what rare arguments need: a vector takes the short way if all its lanes may."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I32, I64, Code, element, literal, shaped

SMALLEST_NORMAL, INFINITY = 0x00800000, 0x7F800000
"""As the bits of f32."""


def unless_any(
    code: Code, rare: ll.Value, fast: tuple[ll.Value, ...], otherwise: Callable[[], tuple[ll.Value, ...]]
) -> tuple[ll.Value, ...]:
    """Returns `fast`, but if the condition holds for any lane, the result of the code that `otherwise` emits."""
    builder = code.builder
    if isinstance(rare.type, ll.VectorType):
        rare = code.in_any_lane(rare)
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
    return _by_all(code, _within(code, x, limit), fast, otherwise)


def if_normal(code: Code, x: ll.Value, fast: Callable[[], ll.Value], otherwise: Callable[[], ll.Value]) -> ll.Value:
    """Returns what `fast` computes if all lanes of the vector x, of f32, are positive, finite and normal numbers; if
    not, what `otherwise` does."""
    # As unsigned integers, the others are larger: those below wrap around.
    above = _largest(code, code.isub(code.bits(x, I32), SMALLEST_NORMAL), "llvm.umax")
    within = code.icompare("<", above, INFINITY - SMALLEST_NORMAL, signed=False)
    return _by_all(code, within, fast, otherwise)


def _by_all(
    code: Code, condition: ll.Value, fast: Callable[[], ll.Value], otherwise: Callable[[], ll.Value]
) -> ll.Value:
    """Returns what `fast` computes if the condition holds in all lanes; if not, what `otherwise` does."""
    (result,) = code.cond(code.in_all_lanes(condition), lambda: [fast()], lambda: [otherwise()], likely=True)
    return result


def _within(code: Code, x: ll.Value, limit: float) -> ll.Value:
    """Compares magnitudes as integers, in which order NaN is above all numbers."""
    integer = I64 if element(x.type) == F64 else I32
    magnitude = code.both(code.bits(x, integer), (1 << (integer.width - 1)) - 1)
    magnitude = _largest(code, magnitude, "llvm.smax")
    bound = code.bits(literal(shaped(element(x.type), magnitude.type), limit), integer)
    return code.icompare("<=", magnitude, bound)


def _largest(code: Code, integers: ll.Value, larger: str) -> ll.Value:
    """Returns one register: the largest of several ones at each place."""
    while (lanes := integers.type.count) * element(integers.type).width > 8 * code.target.vector_bytes:
        low, high = (tuple(range(at, at + lanes // 2)) for at in (0, lanes // 2))
        integers = code.intrinsic(larger, code.shuffle(integers, low), code.shuffle(integers, high))
    return integers
