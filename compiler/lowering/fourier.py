"""Fourier transforms of rows whose length is a power of two. Stockham's algorithm makes a few passes over a row in
scratch. Each computes small transforms of numbers that are far apart and multiplies them by roots of unity (the
twiddles); the results end up in order. Neighbours are transformed in lanes. Other transforms are products of matrices
(`passes/decompositions/fourier.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trivium.compiler.fourier import roots
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.lowering import complex as numbers
from trivium.compiler.lowering.complex import Pair
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Variable, constant, fresh, indices_of
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.row import Row
from trivium.compiler.lowering.rules import kernel
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.types import ComplexType, FloatType, Type, tensor


def radices(length: int) -> list[int]:
    """Returns the sizes of the small transforms: eights, then one or two fours."""
    bits = length.bit_length() - 1
    fours = -bits % 3
    return [8] * ((bits - 2 * fours) // 3) + [4] * fours


@dataclass(frozen=True)
class Pass:
    """The row has `rest` * `radix` numbers that are still to be transformed, in `stride` columns that are already
    transformed, in order."""

    radix: int
    rest: int
    stride: int


def passes(length: int) -> Iterator[Pass]:
    stride = 1
    for radix in radices(length):
        yield Pass(radix, length // stride // radix, stride)
        stride *= radix


@dataclass(frozen=True)
class Planes:
    """Complex numbers in memory, real and imaginary parts apart."""

    real: Row
    imag: Row

    def load(self, ctx: LoweringContext, index: Index) -> Pair:
        return self.real.load(ctx, index), self.imag.load(ctx, index)  # type: ignore[return-value]

    def store(self, ctx: LoweringContext, index: Callable[[int], Index], found: Sequence[Pair]) -> None:
        for part, row in enumerate((self.real, self.imag)):
            for k, pair in enumerate(found):
                row.store(ctx, index(k), pair[part])


@kernel(ops.Fft)
def fft(launches: Launches, op: ops.Fft) -> None:
    *shape, length = op.operand.type.shape
    kind = op.operand.type.element_type
    assert isinstance(kind, ComplexType)
    limits, outer = launches.target.fusion, fresh(shape)
    needed = 4 * length * kind.element_type.dtype.itemsize
    few = math.prod(shape) == 1 and length > limits.serial_row
    # Where threads share scratch, each pass of all rows is a launch.
    if needed <= limits.scratch_bytes and not few and not launches.target.shared_memory_bytes:
        with launches.kernel() as ctx, ctx.nest(outer):
            planes = [_planes(ctx.scratch(kind.element_type, (2, length))) for _ in range(2)]
            for step in passes(length):
                with ctx.parallel(loops := fresh((step.rest, step.stride))):
                    _pass(ctx, op, step, outer, loops, planes)
                planes.reverse()
        return
    pair = tensor(2, *shape, length, of=kind.element_type)
    planes = [_planes(Temporary(pair, op), outer) for _ in range(2)]
    for step in passes(length):
        loops = fresh((step.rest, step.stride))
        with launches.kernel(f"_pass{step.stride}") as ctx, ctx.nest([*outer, *loops]):
            _pass(ctx, op, step, outer, loops, planes)
        planes.reverse()


def _planes(memory: object, outer: Sequence[Variable] = ()) -> Planes:
    real, imag = (Row(memory, (constant(part), *indices_of(outer))) for part in range(2))  # type: ignore[arg-type]
    return Planes(real, imag)


def _pass(
    ctx: LoweringContext,
    op: ops.Fft,
    step: Pass,
    outer: Sequence[Variable],
    loops: Sequence[Variable],
    planes: Sequence[Planes],
) -> None:
    """Emits one small transform, from the operand or the first planes to the second ones or the result. The inverse
    transform is the transform with real and imaginary parts exchanged."""
    b, before, (p, q) = ctx.b, indices_of(outer), indices_of(loops)
    inverse = op.fft_type is ops.FftType.IFFT
    taken: list[Pair] = []
    for j in range(step.radix):
        at = q + (p + step.rest * j) * step.stride
        if step.stride == 1:
            pair = ctx.element(op.operand, (*before, at))
            taken.append((pair[1], pair[0]) if inverse else pair)  # type: ignore[index,arg-type]
        else:
            taken.append(planes[0].load(ctx, at))
    found = small_transform(b, taken)
    if step.rest > 1:
        real, imag = twiddles(step.radix, step.rest, op.operand.type.element_type)
        for k in range(1, step.radix):
            root = ctx.element(real, (constant(k), p)), ctx.element(imag, (constant(k), p))
            found[k] = numbers.multiply(b, found[k], root)  # type: ignore[arg-type]
        planes[1].store(ctx, lambda k: q + (p * step.radix + k) * step.stride, found)
        return
    for k, (x, y) in enumerate(found):
        scale = 1 / op.fft_length[0]
        result = (b.multiply(y, scale), b.multiply(x, scale)) if inverse else (x, y)
        ctx.store(op.result, (*before, q + k * step.stride), result)


def small_transform(b: KernelBuilder, x: list[Pair]) -> list[Pair]:
    """Returns the transform of 1, 2, 4 or 8 numbers: those of the even ones and of the odd ones are combined."""
    if len(x) == 1:
        return x
    even, odd = small_transform(b, x[::2]), small_transform(b, x[1::2])
    odd = [_turned(b, number, 8 * k // len(x)) for k, number in enumerate(odd)]
    sums = [numbers.add(b, *pair) for pair in zip(even, odd, strict=True)]
    return sums + [numbers.subtract(b, *pair) for pair in zip(even, odd, strict=True)]


def _turned(b: KernelBuilder, x: Pair, eighths: int) -> Pair:
    """Returns a number turned clockwise by 0 to 3 eighths."""
    real, imag = x
    if eighths in (1, 3):
        half = math.sqrt(0.5)
        real, imag = b.multiply(b.add(real, imag), half), b.multiply(b.subtract(imag, real), half)
    return (imag, b.apply("negate", real)) if eighths in (2, 3) else (real, imag)


@lru_cache(maxsize=64)
def _tables(radix: int, rest: int, element_type: FloatType) -> tuple[DenseElements, DenseElements]:
    turns = roots(np.outer(np.arange(radix), np.arange(rest)), radix * rest, inverse=False)
    real, imag = (np.ascontiguousarray(part.astype(element_type.dtype)) for part in (turns.real, turns.imag))
    return DenseElements(real), DenseElements(imag)


def twiddles(radix: int, rest: int, kind: Type) -> tuple[Value, Value]:
    """Returns the real and imaginary parts of the roots of unity by which a pass multiplies, by (k, p)."""
    assert isinstance(kind, ComplexType)
    real, imag = _tables(radix, rest, kind.element_type)
    return ops.Constant(real).result, ops.Constant(imag).result
