"""Instructions of AVX-512 on whole vectors, for values of any number of lanes."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, I8, I16, I32, Code, element, undefined

BYTES = 64
CURRENT_ROUNDING = 4

EXTREMES = {"minimum": 0b0100, "maximum": 0b0101}
NEARER_ZERO = 0b0010
"""What VRANGE selects, and the sign: that of the selected number, or that of the first operand."""

Instruction = Callable[..., ll.Value]


def applied(code: Code, size: int, instruction: Instruction, *operands: ll.Value) -> ll.Value:
    """Returns what `instruction`, which is called with vectors of `size` lanes, computes on operands that are scalars
    or have a number of lanes that is a power of two."""
    if not isinstance(operands[0].type, ll.VectorType):
        places = (code.builder.insert_element(undefined(ll.VectorType(o.type, size)), o, I32(0)) for o in operands)
        return code.builder.extract_element(instruction(*places), I32(0))
    lanes = operands[0].type.count
    if lanes == size:
        return instruction(*operands)
    if lanes < size:
        repeated = tuple(lane % lanes for lane in range(size))
        return code.shuffle(instruction(*(code.shuffle(o, repeated) for o in operands)), tuple(range(lanes)))
    parts = [
        instruction(*(code.shuffle(o, tuple(range(at, at + size))) for o in operands)) for at in range(0, lanes, size)
    ]
    return code.joined(parts)


def scaled(code: Code, a: ll.Value, exponent: ll.Value) -> ll.Value:
    """Returns a * 2^floor(exponent) with one rounding, where the exponent is a float; only on targets with `ldexp`."""
    short = element(a.type) == F32
    size = BYTES // (4 if short else 8)
    vector, mask = ll.VectorType(element(a.type), size), I16(-1) if short else I8(-1)
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if short else 'pd'}.512"

    def instruction(a: ll.Value, exponent: ll.Value) -> ll.Value:
        return code.call(name, vector, a, exponent, undefined(vector), mask, I32(CURRENT_ROUNDING))

    return applied(code, size, instruction, a, exponent)


def extreme(code: Code, operation: str, a: ll.Value, b: ll.Value) -> ll.Value:
    """Returns the `maximum` or `minimum`, where -0 is less than 0; of a number and a NaN, the number. Only on targets
    with `orders_zeros`."""
    return _selected(code, EXTREMES[operation], a, b)


def limited(code: Code, a: ll.Value, magnitude: float) -> ll.Value:
    """Returns `a` or, if its magnitude is larger or it is a NaN, a number of this magnitude; only on targets with
    `orders_zeros`."""
    return _selected(code, NEARER_ZERO, a, code.like(a, magnitude))


def _selected(code: Code, selection: int, a: ll.Value, b: ll.Value) -> ll.Value:
    bits = 32 if element(a.type) == F32 else 64
    lanes = a.type.count if isinstance(a.type, ll.VectorType) else 1
    width = min(512, max(128, lanes * bits))
    vector = ll.VectorType(element(a.type), width // bits)
    mask = (I16 if width // bits > 8 else I8)(-1)
    name = f"llvm.x86.avx512.mask.range.{'ps' if bits == 32 else 'pd'}.{width}"
    mode = (I32(CURRENT_ROUNDING),) if width == 512 else ()

    def instruction(a: ll.Value, b: ll.Value) -> ll.Value:
        return code.call(name, vector, a, b, I32(selection), undefined(vector), mask, *mode)

    return applied(code, vector.count, instruction, a, b)
