"""Instructions of AVX-512 on whole vectors, for values of any number of lanes."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, I8, I16, I32, Code, element, undefined

BYTES = 64
CURRENT_ROUNDING = 4

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
    while len(parts) > 1:
        order = tuple(range(2 * parts[0].type.count))
        parts = [code.shuffle(low, order, high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def scaled(code: Code, a: ll.Value, exponent: ll.Value) -> ll.Value:
    """Returns a * 2^floor(exponent) with one rounding, where the exponent is a float; only on targets with `ldexp`."""
    short = element(a.type) == F32
    size = BYTES // (4 if short else 8)
    vector, mask = ll.VectorType(element(a.type), size), I16(-1) if short else I8(-1)
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if short else 'pd'}.512"

    def instruction(a: ll.Value, exponent: ll.Value) -> ll.Value:
        return code.call(name, vector, a, exponent, undefined(vector), mask, I32(CURRENT_ROUNDING))

    return applied(code, size, instruction, a, exponent)
