"""A thin layer over llvmlite's IRBuilder in which one function serves scalars and vectors alike: literals take the type
of the other operand. All computing code (operations, math functions, conversions) is written against it."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence

import llvmlite.ir as ll
from llvmlite.ir.values import FormattedConstant

from trivium.backends.llvm.target import LlvmTarget

I1, I8, I16, I32, I64 = (ll.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ll.FloatType(), ll.DoubleType()
POINTER = ll.PointerType()
Number = bool | int | float
SHIFT_F32, SHIFT_F64 = 1.5 * 2.0**23, 1.5 * 2.0**52
"""Added to a float that is small beside it, rounds it to an integer, which is then in the low bits of the sum."""


class BFloat(ll.Type):
    """bf16, which llvmlite does not know."""

    def _to_string(self) -> str:
        return "bfloat"


BF16 = BFloat()


class Literal(FormattedConstant):
    """A constant in LLVM's text form; llvmlite would spell out every lane of a vector."""

    def __init__(self, type_: ll.Type, text: str):
        super().__init__(type_, text)
        self.constant = text


def element(type_: ll.Type) -> ll.Type:
    """Returns the scalar type of a scalar or vector type."""
    return type_.element if isinstance(type_, ll.VectorType) else type_


def shaped(scalar: ll.Type, like: ll.Type) -> ll.Type:
    """Returns `scalar`, or the vector of it with as many lanes as `like`."""
    return ll.VectorType(scalar, like.count) if isinstance(like, ll.VectorType) else scalar


def literal(type_: ll.Type, number: Number) -> ll.Value:
    """Returns a constant of a scalar type, or the vector that repeats it."""
    scalar = element(type_)
    text = _float_text(scalar, float(number)) if isinstance(scalar, ll.FloatType | ll.DoubleType) else str(int(number))
    if isinstance(type_, ll.VectorType):
        return Literal(type_, f"splat ({scalar} {text})")
    return Literal(type_, text)


def is_true(value: ll.Value) -> bool:
    """Whether a condition is known to hold, in every lane."""
    return isinstance(value, Literal) and element(value.type) == I1 and value.constant in ("1", "splat (i1 1)")


def _float_text(scalar: ll.Type, number: float) -> str:
    """Returns the text of a float: LLVM writes both float types as the bits of the double."""
    if isinstance(scalar, ll.FloatType) and number == number:
        try:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def stack_slot(builder: ll.IRBuilder, type_: ll.Type, align: int = 8) -> ll.Value:
    """Allocates memory on the function's stack, at its entry so that loops do not make it grow."""
    with builder.goto_entry_block():
        slot = builder.alloca(type_)
    slot.align = align
    # llvmlite's allocas still have a typed pointer, which fits nothing else.
    slot.type = POINTER
    return slot


@functools.cache
def undefined(type_: ll.Type) -> ll.Value:
    """Returns a value of which nothing is known."""
    return Literal(type_, "undef")


@functools.cache
def _order(lanes: tuple[int, ...]) -> ll.Value:
    """Returns a shuffle's constant; made once, as llvmlite is slow to write it."""
    return ll.Constant(ll.VectorType(I32, len(lanes)), list(lanes))


class Code:
    """Emits arithmetic at the builder's position. All operands of an operation have one type, which Python numbers
    take."""

    def __init__(self, builder: ll.IRBuilder, target: LlvmTarget, fast_math: bool = False):
        self.builder = builder
        self.target = target
        # Not nnan and ninf: they would make programs that compute with infinities (masks) undefined.
        self.flags = ("reassoc", "nsz", "arcp", "contract") if fast_math else ()

    def strict(self) -> Code:
        """Returns the same position without fast-math flags: for algorithms that rely on the order of operations."""
        return Code(self.builder, self.target) if self.flags else self

    # Literals and shapes

    def like(self, value: ll.Value, operand: ll.Value | Number) -> ll.Value:
        """Returns `operand`, as a value of `value`'s type if it is a number."""
        return operand if isinstance(operand, ll.Value) else literal(value.type, operand)

    def splat(self, value: ll.Value, lanes: int) -> ll.Value:
        """Returns the vector that repeats a scalar."""
        if lanes == 1 or isinstance(value.type, ll.VectorType):
            return value
        type_ = ll.VectorType(value.type, lanes)
        if isinstance(value, Literal):
            return Literal(type_, f"splat ({value.type} {value.constant})")
        first = self.builder.insert_element(undefined(type_), value, I32(0))
        return self.shuffle(first, (0,) * lanes)

    def shuffle(self, a: ll.Value, order: tuple[int, ...], b: ll.Value | None = None) -> ll.Value:
        """Returns the lanes of a (and, numbered after them, of b) in a new order."""
        return self.builder.shuffle_vector(a, undefined(a.type) if b is None else b, _order(order))

    def halves(self, vector: ll.Value) -> tuple[ll.Value, ll.Value]:
        """Returns the lower and the upper half of the lanes; scalars, of two lanes."""
        half = vector.type.count // 2
        if half == 1:
            first, second = (self.builder.extract_element(vector, I32(lane)) for lane in (0, 1))
            return first, second
        first, second = (self.shuffle(vector, tuple(range(begin, begin + half))) for begin in (0, half))
        return first, second

    def joined(self, parts: Sequence[ll.Value]) -> ll.Value:
        """Returns the lanes of all parts, whose number is a power of two."""
        if len(parts) == 1:
            return parts[0]
        low, high = self.joined(parts[: len(parts) // 2]), self.joined(parts[len(parts) // 2 :])
        return self.shuffle(low, tuple(range(2 * low.type.count)), high)

    def _pair(self, a: ll.Value | Number, b: ll.Value | Number) -> tuple[ll.Value, ll.Value]:
        """Returns two operands as values, of which one may be a number."""
        value = a if isinstance(a, ll.Value) else b
        return self.like(value, a), self.like(value, b)

    # Floats

    def add(self, a: ll.Value | Number, b: ll.Value | Number) -> ll.Value:
        return self.builder.fadd(*self._pair(a, b), flags=self.flags)

    def sub(self, a: ll.Value | Number, b: ll.Value | Number) -> ll.Value:
        return self.builder.fsub(*self._pair(a, b), flags=self.flags)

    def mul(self, a: ll.Value | Number, b: ll.Value | Number) -> ll.Value:
        return self.builder.fmul(*self._pair(a, b), flags=self.flags)

    def div(self, a: ll.Value | Number, b: ll.Value | Number) -> ll.Value:
        return self.builder.fdiv(*self._pair(a, b), flags=self.flags)

    def fma(self, a: ll.Value, b: ll.Value | Number, c: ll.Value | Number) -> ll.Value:
        """Returns a * b + c, fused if the target supports it (for approximations, whose error bounds hold either
        way)."""
        if self.target.fma:
            return self.fused(a, b, c)
        return self.add(self.mul(a, b), c)

    def fused(self, a: ll.Value, b: ll.Value | Number, c: ll.Value | Number) -> ll.Value:
        """Returns a * b + c with one rounding, on every target."""
        return self.intrinsic("llvm.fma", a, self.like(a, b), self.like(a, c))

    def polynomial(self, x: ll.Value, coefficients: Sequence[float]) -> ll.Value:
        """Evaluates by Horner's rule; `coefficients` are in order from the highest power down."""
        result = literal(x.type, coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, coefficient)
        return result

    def compare(self, relation: str, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        """Compares floats: ordered, but `!=` unordered, as NumPy's operators do."""
        b = self.like(a, b)
        return (
            self.builder.fcmp_unordered(relation, a, b)
            if relation == "!="
            else self.builder.fcmp_ordered(relation, a, b)
        )

    def is_nan(self, a: ll.Value) -> ll.Value:
        return self.builder.fcmp_unordered("uno", a, a)

    def abs(self, a: ll.Value) -> ll.Value:
        return self.intrinsic("llvm.fabs", a)

    def copysign(self, magnitude: ll.Value, sign: ll.Value) -> ll.Value:
        return self.intrinsic("llvm.copysign", magnitude, sign)

    def with_sign(self, magnitude: ll.Value, sign: ll.Value) -> ll.Value:
        """Returns `copysign` of a magnitude whose sign bit is not set, or is that of `sign`: an instruction less."""
        integer = I64 if element(sign.type) == F64 else I32
        bit = self.both(self.bits(sign, integer), -(1 << (integer.width - 1)))
        return self.bits(self.either(self.bits(magnitude, integer), bit), element(sign.type))

    # Integers

    def iadd(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.add(a, self.like(a, b))

    def isub(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.sub(a, self.like(a, b))

    def shl(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.shl(a, self.like(a, b))

    def lshr(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.lshr(a, self.like(a, b))

    def ashr(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.ashr(a, self.like(a, b))

    def both(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.and_(a, self.like(a, b))

    def either(self, a: ll.Value, b: ll.Value | Number) -> ll.Value:
        return self.builder.or_(a, self.like(a, b))

    def icompare(self, relation: str, a: ll.Value, b: ll.Value | Number, signed: bool = True) -> ll.Value:
        compare = self.builder.icmp_signed if signed else self.builder.icmp_unsigned
        return compare(relation, a, self.like(a, b))

    # Masks

    def in_all_lanes(self, mask: ll.Value) -> ll.Value:
        """Whether a vector of truth values is true in every lane."""
        return self.call(f"llvm.vector.reduce.and.{mangle(mask.type)}", I1, mask)

    def in_any_lane(self, mask: ll.Value) -> ll.Value:
        """Whether a vector of truth values is true in some lane."""
        return self.call(f"llvm.vector.reduce.or.{mangle(mask.type)}", I1, mask)

    # Floats and integers

    def phi(self, incoming: Sequence[tuple[ll.Value, ll.Block]]) -> ll.Value:
        """Returns the value that belongs to the block from which control arrives."""
        phi = self.builder.phi(incoming[0][0].type)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    def cond(
        self,
        condition: ll.Value,
        then: Callable[[], Sequence[ll.Value]],
        otherwise: Callable[[], Sequence[ll.Value]],
        likely: bool | None = None,
    ) -> list[ll.Value]:
        """Branches to the code that one of the two functions emits; returns what each value of it is afterwards."""
        found = []
        with self.builder.if_else(condition, likely=likely) as branches:
            for branch, emit in zip(branches, (then, otherwise), strict=True):
                with branch:
                    values = emit()
                    found.append([(value, self.builder.block) for value in values])
        return [self.phi(incoming) for incoming in zip(*found, strict=True)]

    def select(self, condition: ll.Value, a: ll.Value | Number, b: ll.Value | Number) -> ll.Value:
        like = a if isinstance(a, ll.Value) else b
        return self.builder.select(condition, self.like(like, a), self.like(like, b))

    def bits(self, a: ll.Value, scalar: ll.Type) -> ll.Value:
        """Returns the same bits as another type of the same width."""
        return self.builder.bitcast(a, shaped(scalar, a.type))

    def intrinsic(self, name: str, *operands: ll.Value) -> ll.Value:
        """Calls an LLVM intrinsic that is overloaded on the type of its first operand, and returns a value of that
        type."""
        return self.call(f"{name}.{mangle(operands[0].type)}", operands[0].type, *operands)

    def call(self, name: str, result: ll.Type, *operands: ll.Value) -> ll.Value:
        """Calls a function by name, which is declared on first use."""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ll.Function(module, ll.FunctionType(result, [operand.type for operand in operands]), name)
        return self.builder.call(function, operands)


def mangle(type_: ll.Type) -> str:
    """Returns LLVM's suffix for overloaded intrinsics."""
    if isinstance(type_, ll.VectorType):
        return f"v{type_.count}{mangle(type_.element)}"
    if isinstance(type_, ll.PointerType):
        return "p0"
    return {F32: "f32", F64: "f64"}.get(type_) or f"i{type_.width}"
