"""Fourier transforms of rows whose length has small prime factors. Stockham's algorithm makes a few passes over a row
in scratch. Each computes small transforms of numbers that are far apart and multiplies them by roots of unity (the
twiddles); the results end up in order. Neighbours are transformed in lanes. Other transforms are products of matrices
(`passes/decompositions/fourier.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce

import numpy as np

from trivium.compiler.fourier import ComplexArray, odd_radices, roots
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
from trivium.ir.types import ComplexType, FloatType, tensor


def radices(length: int) -> list[int]:
    """Returns the sizes of the small transforms: eights, then one or two fours, or a two; then odd ones, whose results
    are no whole vectors before these have made columns."""
    odd, power = odd_radices(length)
    bits = power.bit_length() - 1
    fours = -bits % 3
    return ([2] if bits == 1 else [8] * ((bits - 2 * fours) // 3) + [4] * fours) + odd


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
    *shape, _ = op.result.type.shape
    limits, outer = launches.target.fusion, fresh(shape)
    made = Transform(op, outer)
    few = math.prod(shape) == 1 and made.length > limits.serial_row
    # Where threads share scratch, each pass of all rows is a launch.
    if 2 * made.bytes_of_planes <= limits.scratch_bytes and not few and not launches.target.shared_memory_bytes:
        with launches.kernel() as ctx, ctx.nest(outer):
            planes = [_planes(ctx.scratch(made.element_type, (2, made.room))) for _ in range(2)]
            for _, extents, emit in made.steps(planes):
                with ctx.parallel(loops := fresh(extents)):
                    emit(ctx, indices_of(loops))
        return
    kind = tensor(2, *shape, made.room, of=made.element_type)
    for name, extents, emit in made.steps([_planes(Temporary(kind, op), outer) for _ in range(2)]):
        loops = fresh(extents)
        with launches.kernel(name) as ctx, ctx.nest([*outer, *loops]):
            emit(ctx, indices_of(loops))


def _planes(memory: object, outer: Sequence[Variable] = ()) -> Planes:
    real, imag = (Row(memory, (constant(part), *indices_of(outer))) for part in range(2))  # type: ignore[arg-type]
    return Planes(real, imag)


Emit = Callable[[LoweringContext, Sequence[Index]], None]
"""Emits one iteration of a step."""


@dataclass(frozen=True)
class Transform:
    """The transform of rows, whose indices are `outer`. The inverse transform is the transform with real and imaginary
    parts exchanged. Real numbers are transformed in pairs, as if they were the parts of complex ones, of which there
    are half as many: the number at k of the result is computed from those at k and at -k."""

    op: ops.Fft
    outer: Sequence[Variable]

    @property
    def length(self) -> int:
        """The length of the complex transform."""
        return self.op.fft_length[0] // (1 + self.is_real)

    @property
    def is_real(self) -> bool:
        return self.op.fft_type in (ops.FftType.RFFT, ops.FftType.IRFFT)

    @property
    def is_inverse(self) -> bool:
        return self.op.fft_type in (ops.FftType.IFFT, ops.FftType.IRFFT)

    @property
    def element_type(self) -> FloatType:
        kinds = (value.type.element_type for value in (self.op.result, self.op.operand))
        return next(kind.element_type for kind in kinds if isinstance(kind, ComplexType))

    @cached_property
    def turns(self) -> tuple[Value, Value]:
        """The roots of unity that turn the differences of numbers and their mirror images."""
        return half_twiddles(self.length, self.element_type, inverse=self.is_inverse)

    @property
    def room(self) -> int:
        """The numbers in a row of planes. Those of the last pass at 0 and behind are also at `length` and behind."""
        *_, last = passes(self.length)
        return self.length + (last.stride if self.is_real else 0)

    @property
    def bytes_of_planes(self) -> int:
        return 2 * self.room * self.element_type.dtype.itemsize

    def steps(self, planes: Sequence[Planes]) -> Iterator[tuple[str, tuple[int, ...], Emit]]:
        """Yields the steps, each with its name and the extents of its loops. Each pass reads the first planes, or the
        operand, and writes the second ones, or the result."""
        source, destination = planes
        if self.is_real and self.is_inverse:
            yield "_begin", (self.length + 1,), partial(self._begin, source)
        for step in passes(self.length):
            yield f"_pass{step.stride}", (step.rest, step.stride), partial(self._pass, step, source, destination)
            source, destination = destination, source
        if self.is_real and not self.is_inverse:
            yield "_end", (self.length + 1,), partial(self._end, source)

    def _begin(self, planes: Planes, ctx: LoweringContext, at: Sequence[Index]) -> None:
        """Stores a number of the operand. The imaginary parts of the first and of the last one do not count."""
        real, imag = ctx.element(self.op.operand, (*indices_of(self.outer), *at))  # type: ignore[misc]
        b, place = ctx.b, ctx.position(at[0])
        is_end = b.apply("or", b.compare("EQ", place, 0), b.compare("EQ", place, self.length))
        planes.store(ctx, lambda _: at[0], [(real, b.select(is_end, 0.0, imag))])

    def _pass(self, step: Pass, source: Planes, destination: Planes, ctx: LoweringContext, at: Sequence[Index]) -> None:
        """Emits one small transform."""
        b, (p, q) = ctx.b, at
        places = [q + (p + step.rest * j) * step.stride for j in range(step.radix)]
        if step.stride == 1:
            found = [self._first(source, ctx, place) for place in places]
        else:
            found = [source.load(ctx, place) for place in places]
        found = small_transform(b, found)
        if step.rest > 1:
            roots = twiddles(step.radix, step.rest, self.element_type)
            for k in range(1, step.radix):
                found[k] = numbers.multiply(b, found[k], _pair(ctx, roots, constant(k), p))
            destination.store(ctx, lambda k: q + (p * step.radix + k) * step.stride, found)
        elif self.is_real and not self.is_inverse:
            destination.store(ctx, lambda k: q + k * step.stride, found)
            destination.store(ctx, lambda _: q + self.length, found[:1])
        else:
            for k, pair in enumerate(found):
                self._last(ctx, q + k * step.stride, pair)

    def _first(self, planes: Planes, ctx: LoweringContext, at: Index) -> Pair:
        """Returns a number that the first pass transforms."""
        before = indices_of(self.outer)
        if not self.is_real:
            real, imag = ctx.element(self.op.operand, (*before, at))  # type: ignore[misc]
        elif not self.is_inverse:
            real, imag = (ctx.real(self.op.operand, (*before, at * 2 + part)) for part in range(2))
        else:
            b = ctx.b
            sums, differences = _mirrored(ctx, planes, at, self.length)
            root = _pair(ctx, self.turns, at)
            turned = numbers.multiply(b, differences, root)
            real, imag = b.subtract(sums[0], turned[1]), b.add(sums[1], turned[0])
        return (imag, real) if self.is_inverse else (real, imag)

    def _last(self, ctx: LoweringContext, at: Index, pair: Pair) -> None:
        """Stores a number that the last pass has transformed."""
        before, b, scale = indices_of(self.outer), ctx.b, 1 / self.op.fft_length[0]
        if self.is_inverse:
            pair = b.multiply(pair[1], scale), b.multiply(pair[0], scale)
        if self.is_real:
            for part, number in enumerate(pair):
                ctx.store(self.op.result, (*before, at * 2 + part), number)
        else:
            ctx.store(self.op.result, (*before, at), pair)

    def _end(self, planes: Planes, ctx: LoweringContext, at: Sequence[Index]) -> None:
        """Stores a number of the transform of real numbers: the means of the sums, and of the differences turned."""
        b = ctx.b
        sums, (real, imag) = _mirrored(ctx, planes, at[0], self.length)
        root = _pair(ctx, self.turns, at[0])
        turned = numbers.multiply(b, (imag, b.apply("negate", real)), root)
        real, imag = numbers.add(b, sums, turned)
        ctx.store(self.op.result, (*indices_of(self.outer), *at), (b.multiply(real, 0.5), b.multiply(imag, 0.5)))


def _mirrored(ctx: LoweringContext, planes: Planes, at: Index, length: int) -> tuple[Pair, Pair]:
    """Returns the sum, and the difference, of the number at `at` and the conjugate of its mirror image."""
    b, one, other = ctx.b, planes.load(ctx, at), planes.load(ctx, at * -1 + length)
    other = other[0], b.apply("negate", other[1])
    return numbers.add(b, one, other), numbers.subtract(b, one, other)


def _pair(ctx: LoweringContext, values: tuple[Value, Value], *at: Index) -> Pair:
    real, imag = values
    return ctx.real(real, at), ctx.real(imag, at)


def small_transform(b: KernelBuilder, x: list[Pair]) -> list[Pair]:
    """Returns the transform of 1, 2, 4 or 8 numbers, in which those of the even ones and of the odd ones are combined,
    or of an odd number of them."""
    if len(x) == 1:
        return x
    if len(x) % 2:
        return _odd_transform(b, x)
    even, odd = small_transform(b, x[::2]), small_transform(b, x[1::2])
    odd = [_turned(b, number, 8 * k // len(x)) for k, number in enumerate(odd)]
    sums = [numbers.add(b, *pair) for pair in zip(even, odd, strict=True)]
    return sums + [numbers.subtract(b, *pair) for pair in zip(even, odd, strict=True)]


def _odd_transform(b: KernelBuilder, x: list[Pair]) -> list[Pair]:
    """Returns the transform of an odd number of numbers: the roots of unity by which two of them are multiplied are
    conjugates, and so are those of two results."""
    pairs = [(x[j], x[-j]) for j in range(1, len(x) // 2 + 1)]
    sums, differences = [numbers.add(b, *pair) for pair in pairs], [numbers.subtract(b, *pair) for pair in pairs]
    low, high = [_added(b, [x[0], *sums])], list[Pair]()
    for k in range(1, len(x) // 2 + 1):
        turns = [roots(np.array(j * k), len(x), inverse=True) for j in range(1, len(x) // 2 + 1)]
        real, imag = _added(b, [x[0], *(_scaled(b, one, float(t.real)) for one, t in zip(sums, turns, strict=True))])
        across, along = _added(b, [_scaled(b, one, float(t.imag)) for one, t in zip(differences, turns, strict=True)])
        low.append((b.add(real, along), b.subtract(imag, across)))
        high.insert(0, (b.subtract(real, along), b.add(imag, across)))
    return low + high


def _added(b: KernelBuilder, terms: list[Pair]) -> Pair:
    return reduce(partial(numbers.add, b), terms)


def _scaled(b: KernelBuilder, x: Pair, factor: float) -> Pair:
    return b.multiply(x[0], factor), b.multiply(x[1], factor)


def _turned(b: KernelBuilder, x: Pair, eighths: int) -> Pair:
    """Returns a number turned clockwise by 0 to 3 eighths."""
    real, imag = x
    if eighths in (1, 3):
        half = math.sqrt(0.5)
        real, imag = b.multiply(b.add(real, imag), half), b.multiply(b.subtract(imag, real), half)
    return (imag, b.apply("negate", real)) if eighths in (2, 3) else (real, imag)


Tables = tuple[DenseElements, DenseElements]


@lru_cache(maxsize=64)
def _tables(radix: int, rest: int, element_type: FloatType) -> Tables:
    return _parts(roots(np.outer(np.arange(radix), np.arange(rest)), radix * rest, inverse=False), element_type)


@lru_cache(maxsize=64)
def _half_tables(length: int, element_type: FloatType, inverse: bool) -> Tables:
    return _parts(roots(np.arange(length + 1), 2 * length, inverse), element_type)


def _parts(turns: ComplexArray, element_type: FloatType) -> Tables:
    real, imag = (np.ascontiguousarray(part.astype(element_type.dtype)) for part in (turns.real, turns.imag))
    return DenseElements(real), DenseElements(imag)


def twiddles(radix: int, rest: int, element_type: FloatType) -> tuple[Value, Value]:
    """Returns the real and imaginary parts of the roots of unity by which a pass multiplies, by (k, p)."""
    real, imag = _tables(radix, rest, element_type)
    return ops.Constant(real).result, ops.Constant(imag).result


def half_twiddles(length: int, element_type: FloatType, *, inverse: bool) -> tuple[Value, Value]:
    """Returns the real and imaginary parts of the first half of the roots of unity of twice the order."""
    real, imag = _half_tables(length, element_type, inverse)
    return ops.Constant(real).result, ops.Constant(imag).result
