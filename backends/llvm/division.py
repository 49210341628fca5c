"""Division of the lanes of a vector by one number. Processors divide few lanes at a time, in a unit of its own, and
meanwhile multiply many: the product of a lane with the number's reciprocal in f64, rounded to f32, is the quotient that
division rounds correctly. So half of the lanes are divided, and half multiplied."""

from __future__ import annotations

from typing import TypeGuard

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I64, Code, shaped
from trivium.compiler.kernel.structure import Apply, Instruction

LONG = 16
"""The number of vectors from which on a loop waits for the unit that divides: in shorter ones, processors look ahead to
what follows, and fewer instructions take less time."""
FEWEST_LANES = 8
"""The lanes of the smallest vector that is divided by halves."""


def is_division(instruction: Instruction) -> TypeGuard[Apply]:
    """Whether an instruction divides f32."""
    return isinstance(instruction, Apply) and instruction.op == "divide" and instruction.result.dtype == "f32"


def is_power_of_two(divisor: ll.Value) -> bool:
    """Whether a divisor is a literal without bits in its mantissa, by whose exact reciprocal LLVM multiplies."""
    return isinstance(divisor, ll.Constant) and int(divisor.constant, 16) % (1 << 52) == 0


def reciprocal(code: Code, divisor: ll.Value) -> ll.Value:
    """Returns a number of f64 that is larger than 1 / `divisor`, unless that is 0 or infinite, by at most 2.5 units in
    the last place."""
    code = code.strict()
    return code.mul(code.div(1.0, code.builder.fpext(divisor, F64)), 1 + 2.0**-52)


def by_halves(code: Code, a: ll.Value, b: ll.Value, reciprocal: ll.Value) -> ll.Value:
    """Returns a / b for lanes of f32 and a scalar, of which the `reciprocal` is known.

    The product with it, in f64, is larger than the quotient by less than 2^-52 of it, times 3. Where the quotient has
    few bits, as an f32 or a number halfway between two of them, the product without its last three bits is therefore
    equal to it. Any other quotient of numbers of 24 bits differs from those halfway by more than 2^-49 of it (the
    remainder of a division by b is a whole number of products of the operands' last places), and the product without
    these bits by less. So both are rounded to the same f32, subnormal ones too. No reciprocal of an f32 overflows or
    underflows in f64, except that of 0; what follows from 0, infinities and NaN is the same for the product."""
    builder, (low, high) = code.builder, code.halves(a)
    wide = code.strict().mul(builder.fpext(high, shaped(F64, high.type)), code.splat(reciprocal, high.type.count))
    short = code.bits(code.both(code.bits(wide, I64), -8), F64)
    quotients = code.div(low, code.splat(b, low.type.count)), builder.fptrunc(short, high.type)
    return code.shuffle(quotients[0], tuple(range(a.type.count)), quotients[1])
