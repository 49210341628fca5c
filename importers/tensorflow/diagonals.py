"""Diagonals of matrices: taken out, set, and made into matrices. A band of diagonals is a matrix with one of them in
each row, from the highest down, aligned to the left or to the right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trivium.importers.extents import Extent, Size, chosen, known_shape, larger, numbers_of, scalar_of, smaller
from trivium.importers.factorizations import diagonal_of
from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import compatible

LEFT = "LEFT_LEFT"
"""The alignment of the ops that do not have the attribute."""


@dataclass(frozen=True)
class Band:
    """The diagonals `low` to `high` of matrices of some rows and columns."""

    ctx: Context
    rows: Extent
    columns: Extent
    low: int
    high: int
    align: str

    @property
    def length(self) -> Extent:
        """The length of the longest diagonal."""
        return smaller(self.ctx, self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    @property
    def is_square_diagonal(self) -> bool:
        """Whether the band is the main diagonal of square matrices."""
        return self.low == self.high == 0 and self.rows == self.columns

    def to_matrix(self) -> Value:
        """Returns for each element of the matrix its place in the flat band; -1 outside."""
        ctx, shape = self.ctx, (self.rows, self.columns)
        row, column = (ctx.iota(shape, dimension) for dimension in range(2))
        diagonal = ctx.minus(column, row)
        begins = ctx.times(ctx.minus(scalar_of(ctx, self.high), diagonal), scalar_of(ctx, self.length))
        place = ctx.plus(ctx.plus(begins, ctx.binary(ops.Minimum, row, column)), self._shifts(diagonal))
        return _where(ctx, place, ("GE", diagonal, self.low), ("LE", diagonal, self.high))

    def from_matrix(self) -> Value:
        """Returns for each element of the band its place in the flat matrix; -1 outside."""
        ctx, shape = self.ctx, (self.high - self.low + 1, self.length)
        diagonal = ctx.minus(scalar_of(ctx, self.high), ctx.iota(shape, 0))
        within = ctx.minus(ctx.iota(shape, 1), self._shifts(diagonal))
        row, column = ctx.plus(within, _below(ctx, diagonal)), ctx.plus(within, _above(ctx, diagonal))
        place = ctx.plus(ctx.times(row, scalar_of(ctx, self.columns)), column)
        return _where(ctx, place, ("GE", within, 0), ("LT", row, self.rows), ("LT", column, self.columns))

    def _shifts(self, diagonal: Value) -> Value:
        """Returns where each of some diagonals begins in its row of the band."""
        ctx = self.ctx
        rows = ctx.minus(scalar_of(ctx, self.rows), _below(ctx, diagonal))
        columns = ctx.minus(scalar_of(ctx, self.columns), _above(ctx, diagonal))
        gap = ctx.minus(scalar_of(ctx, self.length), ctx.binary(ops.Minimum, rows, columns))
        zero = scalar_of(ctx, 0)
        above, below = (zero if word == "LEFT" else gap for word in self.align.split("_"))
        # The main diagonal, where it is part of the band, is the longest one.
        return ctx.select(ctx.compare("GT", diagonal, zero), above, below)


def _above(ctx: Context, diagonal: Value) -> Value:
    """Returns in which column diagonals begin."""
    return ctx.binary(ops.Maximum, diagonal, scalar_of(ctx, 0))


def _below(ctx: Context, diagonal: Value) -> Value:
    """Returns in which row diagonals begin."""
    return ctx.binary(ops.Maximum, ctx.add(ops.Negate(diagonal)), scalar_of(ctx, 0))


def _where(ctx: Context, place: Value, *tests: tuple[str, Value, Extent]) -> Value:
    """Returns places where all comparisons of values with numbers hold, and -1 elsewhere."""
    for direction, value, bound in tests:
        place = ctx.select(ctx.compare(direction, value, scalar_of(ctx, bound)), place, scalar_of(ctx, -1))
    return place


def _limits(ctx: Context, k: np.ndarray) -> tuple[int, int]:
    """Returns the lowest and the highest diagonal that `k` selects."""
    given = [int(d) for d in np.ravel(k)]
    if not 1 <= len(given) <= 2 or given != sorted(given):
        ctx.unsupported("k", given, "one or two ascending numbers")
    return given[0], given[-1]


def _band_within(ctx: Context, x: Value, k: np.ndarray, align: str) -> Band:
    """Returns the band of matrices that have these diagonals."""
    rows, columns = ctx.extents(x)[-2:]
    low, high = _limits(ctx, k)
    least, most = (low if isinstance(rows, Size) else 1 - rows), (high if isinstance(columns, Size) else columns - 1)
    if any(d and not least <= d <= most for d in (low, high)):
        ctx.unsupported("k", [low, high], f"numbers from {min(0, least)} to {max(0, most)}")
    return Band(ctx, rows, columns, low, high, align)


def _picked(ctx: Context, x: Value, places: Value, count: int, other: Value) -> Value:
    """Returns elements of `x`, whose last `count` dimensions are flattened, at places; `other` where that is -1."""
    extents = ctx.extents(x)
    *batch, _ = shape = (*extents[:-count], math.prod(extents[-count:]))
    taken = ctx.take(ctx.reshape(x, shape), places, len(batch))
    return ctx.select(ctx.compare("GE", places, scalar_of(ctx, 0)), taken, other)


# Diagonals of matrices


@rule("MatrixDiagPart")
def matrix_diag_part(ctx: Context, input: Value) -> Value:
    """MatrixDiagPart(input) -> diagonal"""
    return _part(ctx, input, np.array(0), ctx.constant_like(input, 0), LEFT)


@rule("MatrixDiagPartV2")
def matrix_diag_part_v2(ctx: Context, input: Value, k: Known, padding_value: Value) -> Value:
    """MatrixDiagPartV2(input, k, padding_value) -> diagonal"""
    return _part(ctx, input, k, padding_value, LEFT)


@rule("MatrixDiagPartV3")
def matrix_diag_part_v3(ctx: Context, input: Value, k: Known, padding_value: Value, *, align: str) -> Value:
    """MatrixDiagPartV3(input, k, padding_value; align="RIGHT_LEFT") -> diagonal"""
    return _part(ctx, input, k, padding_value, align)


def _part(ctx: Context, x: Value, k: np.ndarray, padding: Value, align: str) -> Value:
    band = _band_within(ctx, x, k, align)
    if band.is_square_diagonal:
        return diagonal_of(ctx, x)
    found = _picked(ctx, x, band.from_matrix(), 2, padding)
    return found if band.low < band.high else ctx.reshape(found, (*ctx.extents(x)[:-2], band.length))


# Matrices of diagonals


@rule("MatrixDiag")
def matrix_diag(ctx: Context, diagonal: Value) -> Value:
    """MatrixDiag(diagonal) -> output"""
    count = ctx.extents(diagonal)[-1]
    return _matrix(ctx, diagonal, Band(ctx, count, count, 0, 0, LEFT), ctx.constant_like(diagonal, 0))


@rule("MatrixDiagV2")
def matrix_diag_v2(
    ctx: Context, diagonal: Value, k: Known, num_rows: Tensor, num_cols: Tensor, padding_value: Value
) -> Value:
    """MatrixDiagV2(diagonal, k, num_rows, num_cols, padding_value) -> output"""
    return _matrix(ctx, diagonal, _band(ctx, diagonal, k, num_rows, num_cols, LEFT), padding_value)


@rule("MatrixDiagV3")
def matrix_diag_v3(
    ctx: Context, diagonal: Value, k: Known, num_rows: Tensor, num_cols: Tensor, padding_value: Value, *, align: str
) -> Value:
    """MatrixDiagV3(diagonal, k, num_rows, num_cols, padding_value; align="RIGHT_LEFT") -> output"""
    return _matrix(ctx, diagonal, _band(ctx, diagonal, k, num_rows, num_cols, align), padding_value)


def _band(ctx: Context, diagonal: Value, k: np.ndarray, num_rows: Tensor, num_cols: Tensor, align: str) -> Band:
    """Returns the band of a matrix, whose size is the least that has such diagonals where it is not given."""
    low, high = _limits(ctx, k)
    length = ctx.extents(diagonal)[-1]
    least = (length - min(high, 0), length + max(low, 0))
    (rows,), (columns,) = ctx.given_sizes(num_rows, "num_rows"), ctx.given_sizes(num_cols, "num_cols")
    square = larger(ctx, *least)
    height, width = (
        chosen(ctx, "GE", own, 0, own, chosen(ctx, "GE", other, 0, alone, square))
        for own, other, alone in ((rows, columns, least[0]), (columns, rows, least[1]))
    )
    band = Band(ctx, height, width, low, high, align)
    if numbers_of([length, height, width]) is not None and band.length != length:
        ctx.unsupported("diagonal", f"the length {length}", f"{band.length}, as for {height} rows, {width} columns")
    return band


def _matrix(ctx: Context, diagonal: Value, band: Band, other: Value) -> Value:
    if band.is_square_diagonal:
        square = (band.rows, band.rows)
        is_diagonal = ctx.compare("EQ", ctx.iota(square, 0), ctx.iota(square, 1))
        return ctx.select(is_diagonal, ctx.unsqueeze(diagonal, [diagonal.type.rank]), other)
    return _picked(ctx, diagonal, band.to_matrix(), 1 if band.low == band.high else 2, other)


# Matrices with other diagonals


@rule("MatrixSetDiag")
def matrix_set_diag(ctx: Context, input: Value, diagonal: Value) -> Value:
    """MatrixSetDiag(input, diagonal) -> output"""
    return _set(ctx, input, diagonal, np.array(0), LEFT)


@rule("MatrixSetDiagV2")
def matrix_set_diag_v2(ctx: Context, input: Value, diagonal: Value, k: Known) -> Value:
    """MatrixSetDiagV2(input, diagonal, k) -> output"""
    return _set(ctx, input, diagonal, k, LEFT)


@rule("MatrixSetDiagV3")
def matrix_set_diag_v3(ctx: Context, input: Value, diagonal: Value, k: Known, *, align: str) -> Value:
    """MatrixSetDiagV3(input, diagonal, k; align="RIGHT_LEFT") -> output"""
    return _set(ctx, input, diagonal, k, align)


def _set(ctx: Context, x: Value, diagonal: Value, k: np.ndarray, align: str) -> Value:
    band = _band_within(ctx, x, k, align)
    several = (band.high - band.low + 1,) if band.low < band.high else ()
    wanted = known_shape((*ctx.extents(x)[:-2], *several, band.length))
    if not compatible(diagonal.type, diagonal.type.with_shape(wanted)):
        ctx.unsupported("diagonal", f"shape {list(diagonal.type.shape)}", f"shape {list(wanted)}")
    return _matrix(ctx, diagonal, band, x)


# Diagonals of tensors of twice the rank


@rule("Diag")
def diag(ctx: Context, diagonal: Value) -> Value:
    """Diag(diagonal) -> output"""
    shape = ctx.extents(diagonal)
    flat = ctx.reshape(diagonal, (math.prod(shape),))
    return ctx.reshape(matrix_diag(ctx, flat), (*shape, *shape))


@rule("DiagPart")
def diag_part(ctx: Context, input: Value) -> Value:
    """DiagPart(input) -> diagonal"""
    shape = ctx.extents(input)[: input.type.rank // 2]
    count = math.prod(shape)
    return ctx.reshape(diagonal_of(ctx, ctx.reshape(input, (count, count))), shape)
