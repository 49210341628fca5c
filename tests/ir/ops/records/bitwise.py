"""Bitwise logic, shifts, and counts of bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Lax, exact
from tests.ir.ops.records.elementwise import BOOLEANS, I32_SAMPLE, INTEGERS, binary, unary
from trivium.ir import ops


def width_of(array):
    return ml_dtypes.iinfo(array.dtype).bits


def bitwise(function):
    """Returns an oracle that takes the unsigned bits of each element, and the width."""

    def oracle(*arrays):
        width = width_of(arrays[0])
        return exact(lambda *numbers: function(*(number % (1 << width) for number in numbers), width))(*arrays)

    return oracle


def arithmetic_shift(bits, amount, width):
    value = bits - (1 << width) if bits >> (width - 1) else bits
    return value >> min(amount, width)


RECORDS = [
    *unary(ops.Not, np.logical_not, (BOOLEANS,)),
    *unary(ops.Not, exact(lambda x: ~x), INTEGERS),
    *unary(ops.Popcnt, bitwise(lambda bits, width: bits.bit_count()), INTEGERS),
    *unary(ops.CountLeadingZeros, bitwise(lambda bits, width: width - bits.bit_length()), INTEGERS),
    *binary(ops.And, np.logical_and, (BOOLEANS,)),
    *binary(ops.And, exact(lambda x, y: x & y), INTEGERS),
    *binary(ops.Or, np.logical_or, (BOOLEANS,)),
    *binary(ops.Or, exact(lambda x, y: x | y), INTEGERS),
    *binary(ops.Xor, np.logical_xor, (BOOLEANS,)),
    *binary(ops.Xor, exact(lambda x, y: x ^ y), INTEGERS),
    *binary(ops.ShiftLeft, bitwise(lambda x, y, width: x << y if y < width else 0), INTEGERS),
    *binary(ops.ShiftRightLogical, bitwise(lambda x, y, width: x >> y), INTEGERS),
    *binary(ops.ShiftRightArithmetic, bitwise(arithmetic_shift), INTEGERS),
    *binary(ops.ShiftRightArithmetic, Lax("shift_right_arithmetic"), (I32_SAMPLE,)),
]
