"""Diagonals of matrices: taken out, set, and made into matrices. A band of diagonals is a matrix with one of them in
each row, from the highest down, aligned to the left or to the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.importers.factorizations import diagonal_of
from trivium.importers.tensorflow.context import Context, Known, rule
from trivium.ir.core import Value
from trivium.ir.types import compatible

LEFT = "LEFT_LEFT"
"""The alignment of the ops that do not have the attribute."""


@dataclass(frozen=True)
class Band:
    """The diagonals `low` to `high` of matrices of some rows and columns."""

    rows: int
    columns: int
    low: int
    high: int
    align: str

    @property
    def length(self) -> int:
        """The length of the longest diagonal."""
        return min(self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    def place(self, row: int, column: int) -> tuple[int, int] | None:
        """Returns where the element of a matrix is in the band; `None` outside."""
        d = column - row
        if not self.low <= d <= self.high:
            return None
        length = min(self.rows + min(d, 0), self.columns - max(d, 0))
        above, below = (word == "LEFT" for word in self.align.split("_"))
        shift = 0 if (d >= 0 and above) or (d <= 0 and below) else self.length - length
        return self.high - d, min(row, column) + shift

    def to_matrix(self) -> np.ndarray:
        """Returns for each element of the matrix its place in the flat band; -1 outside."""
        found = np.full((self.rows, self.columns), -1, np.int32)
        for row, column in np.ndindex(found.shape):
            if (place := self.place(row, column)) is not None:
                found[row, column] = place[0] * self.length + place[1]
        return found

    def from_matrix(self) -> np.ndarray:
        """Returns for each element of the band its place in the flat matrix; -1 outside."""
        found = np.full((self.high - self.low + 1, self.length), -1, np.int32)
        for row, column in np.ndindex(self.rows, self.columns):
            if (place := self.place(row, column)) is not None:
                found[place] = row * self.columns + column
        return found


def _limits(ctx: Context, k: np.ndarray) -> tuple[int, int]:
    """Returns the lowest and the highest diagonal that `k` selects."""
    given = [int(d) for d in np.ravel(k)]
    if not 1 <= len(given) <= 2 or given != sorted(given):
        ctx.unsupported("k", given, "one or two ascending numbers")
    return given[0], given[-1]


def _band_within(ctx: Context, shape: Sequence[int], k: np.ndarray, align: str) -> Band:
    """Returns the band of a matrix that has these diagonals."""
    rows, columns = shape
    low, high = _limits(ctx, k)
    if any(d and not -rows < d < columns for d in (low, high)):
        ctx.unsupported("k", [low, high], f"numbers from {min(0, 1 - rows)} to {max(0, columns - 1)}")
    return Band(rows, columns, low, high, align)


def _known_last(ctx: Context, x: Value, count: int) -> list[int]:
    """Returns the last extents, which must be known: tables of places follow from them."""
    known = [extent for extent in x.type.shape[-count:] if extent is not None]
    if len(known) < count:
        ctx.unsupported("input", f"the type {x.type}", "matrices of a known size")
    return known


def _picked(ctx: Context, x: Value, places: np.ndarray, count: int, other: Value) -> Value:
    """Returns elements of `x`, whose last `count` dimensions are flattened, at places; `other` where that is -1."""
    extents = ctx.extents(x)
    *batch, _ = shape = (*extents[:-count], math.prod(extents[-count:]))
    taken = ctx.take(ctx.reshape(x, shape), ctx.elements(np.maximum(places, 0)), len(batch))
    inside = ctx.broadcast_in_dim(ctx.elements(places >= 0), ctx.extents(taken), range(len(batch), taken.type.rank))
    return ctx.select(inside, taken, other)


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
    batch, (rows, columns) = ctx.extents(x)[:-2], _known_last(ctx, x, 2)
    band = _band_within(ctx, (rows, columns), k, align)
    if band.low == band.high == 0 and rows == columns:
        return diagonal_of(ctx, x)
    found = _picked(ctx, x, band.from_matrix(), 2, padding)
    return found if band.low < band.high else ctx.reshape(found, (*batch, band.length))


# Matrices of diagonals


@rule("MatrixDiag")
def matrix_diag(ctx: Context, diagonal: Value) -> Value:
    """MatrixDiag(diagonal) -> output"""
    (count,) = _known_last(ctx, diagonal, 1)
    return _matrix(ctx, diagonal, Band(count, count, 0, 0, LEFT), ctx.constant_like(diagonal, 0))


@rule("MatrixDiagV2")
def matrix_diag_v2(
    ctx: Context, diagonal: Value, k: Known, num_rows: Known, num_cols: Known, padding_value: Value
) -> Value:
    """MatrixDiagV2(diagonal, k, num_rows, num_cols, padding_value) -> output"""
    return _matrix(ctx, diagonal, _band(ctx, diagonal, k, num_rows, num_cols, LEFT), padding_value)


@rule("MatrixDiagV3")
def matrix_diag_v3(
    ctx: Context, diagonal: Value, k: Known, num_rows: Known, num_cols: Known, padding_value: Value, *, align: str
) -> Value:
    """MatrixDiagV3(diagonal, k, num_rows, num_cols, padding_value; align="RIGHT_LEFT") -> output"""
    return _matrix(ctx, diagonal, _band(ctx, diagonal, k, num_rows, num_cols, align), padding_value)


def _band(ctx: Context, diagonal: Value, k: np.ndarray, num_rows: np.ndarray, num_cols: np.ndarray, align: str) -> Band:
    """Returns the band of a matrix, whose size is the least that has such diagonals where it is not given."""
    low, high = _limits(ctx, k)
    (length,) = _known_last(ctx, diagonal, 1)
    least = (length - min(high, 0), length + max(low, 0))
    rows, columns = int(num_rows), int(num_cols)
    if rows < 0 and columns < 0:
        rows = columns = max(least)
    return Band(least[0] if rows < 0 else rows, least[1] if columns < 0 else columns, low, high, align)


def _matrix(ctx: Context, diagonal: Value, band: Band, other: Value) -> Value:
    if band.low == band.high == 0 and band.rows == band.columns:
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
    batch, (rows, columns) = x.type.shape[:-2], _known_last(ctx, x, 2)
    band = _band_within(ctx, (rows, columns), k, align)
    several = (band.high - band.low + 1,) if band.low < band.high else ()
    wanted = (*batch, *several, band.length)
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
