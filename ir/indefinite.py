"""Symmetric and Hermitian matrices that may be indefinite, factored as `P L D L^T P^T` with blocks of one or two rows
in D, and solutions with such factors: LAPACK's `sytrf`, `hetrf`, `sytrs` and `hetrs`, for one matrix. The blocks are
chosen by the rule of Bunch and Kaufman. A pivot counts rows from 1; that of a block of two rows is negative, and is
there twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.inexact]

ALPHA = (1 + 17**0.5) / 8
"""The least size of a pivot, relative to the elements that it eliminates, for which the factors stay bounded."""


def factor(a: Array, *, uplo: int, hermitian: bool) -> tuple[np.ndarray, ...]:
    """Returns the factors in one triangle, which `uplo` says, the pivots, and the first row whose pivot is zero (from
    1), or 0. The other triangle is that of `a`."""
    if uplo == ord("U"):
        factors, pivots, info = factor(a[::-1, ::-1], uplo=ord("L"), hermitian=hermitian)
        return factors[::-1, ::-1], _reversed(pivots), np.asarray(info and len(a) + 1 - info, np.int32)
    n, k, info = len(a), 0, 0
    rest, pivots = _whole(a, hermitian), np.zeros(n, np.int32)
    while k < n:
        count, pivot = _block(rest[k:, k:], hermitian)
        last, pivot = k + count - 1, k + pivot
        _interchange(rest[k:, k:], last - k, pivot - k)
        if not rest[k : k + count, k : k + count].any():
            info = info or k + 1
        else:
            _eliminate(rest[k:, k:], count)
            if hermitian:
                np.fill_diagonal(rest, np.real(np.diag(rest)))
        pivots[k : k + count] = pivot + 1 if count == 1 else -pivot - 1
        k += count
    return np.where(np.tri(n, dtype=bool), rest, a), pivots, np.asarray(info, np.int32)


def solve(factors: Array, pivots: np.ndarray, b: Array, *, uplo: int, hermitian: bool) -> tuple[np.ndarray]:
    """Returns the solution for a matrix that has been factored, NaN if no factorization has these pivots."""
    if uplo == ord("U"):
        (x,) = solve(factors[::-1, ::-1], _reversed(pivots), b[::-1], uplo=ord("L"), hermitian=hermitian)
        return (x[::-1],)
    blocks = _blocks(pivots)
    if blocks is None:
        return (np.full_like(b, np.nan),)
    x, lower = b.copy(), np.tril(factors)
    for k, end in blocks:
        _interchange_rows(x, end - 1, abs(int(pivots[k])) - 1)
        x[end:] -= lower[end:, k:end] @ x[k:end]
        x[k:end] = _quotient(_whole(lower[k:end, k:end], hermitian), x[k:end])
    for k, end in reversed(blocks):
        column = lower[end:, k:end]
        x[k:end] -= (column.conj() if hermitian else column).T @ x[end:]
        _interchange_rows(x, end - 1, abs(int(pivots[k])) - 1)
    return (x,)


def _whole(a: Array, hermitian: bool) -> Array:
    """Returns the matrix of which the lower triangle is given."""
    below = np.tril(a, -1)
    diagonal = np.diag(np.real(np.diag(a)) if hermitian else np.diag(a)).astype(a.dtype)
    return below + diagonal + (below.conj() if hermitian else below).T


def _size(x: Array) -> Array:
    """Returns how LAPACK measures elements."""
    return abs(np.real(x)) + abs(np.imag(x))


def _block(a: Array, hermitian: bool) -> tuple[int, int]:
    """Returns how many rows the next block has, and which row its last one is interchanged with."""
    own, column = _size(a[0, 0]), _size(a[1:, 0])
    if not len(column) or own >= ALPHA * column.max():
        return 1, 0
    row = 1 + int(np.argmax(column))
    largest = max(_size(np.delete(a[row], row)))
    if own >= ALPHA * column.max() * (column.max() / largest):
        return 1, 0
    return (1 if _size(a[row, row]) >= ALPHA * largest else 2), row


def _interchange(a: Array, one: int, other: int) -> None:
    a[[one, other]] = a[[other, one]]
    a[:, [one, other]] = a[:, [other, one]]


def _interchange_rows(x: Array, one: int, other: int) -> None:
    x[[one, other]] = x[[other, one]]


def _eliminate(a: Array, count: int) -> None:
    """Replaces the rows below a block by their multiples of it, and what remains of the matrix by the complement."""
    above = a[:count, count:].copy()
    a[count:, :count] = _quotient(a[:count, :count].T, a[count:, :count].T).T
    a[count:, count:] -= a[count:, :count] @ above


def _quotient(block: Array, x: Array) -> Array:
    """Returns the solution for a block, infinite or NaN if that is singular."""
    if len(block) == 1:
        return x / block[0, 0]
    determinant = block[0, 0] * block[1, 1] - block[0, 1] * block[1, 0]
    inverse = np.array([[block[1, 1], -block[0, 1]], [-block[1, 0], block[0, 0]]]) / determinant
    return (inverse @ x).astype(x.dtype)


def _blocks(pivots: np.ndarray) -> list[tuple[int, int]] | None:
    """Returns the range of rows of each block; `None` if pivots are none of a factorization."""
    n, k, blocks = len(pivots), 0, []
    while k < n:
        count = 1 if pivots[k] > 0 else 2
        if not 1 <= abs(int(pivots[k])) <= n or k + count > n or pivots[k] != pivots[k + count - 1]:
            return None
        blocks.append((k, k + count))
        k += count
    return blocks


def _reversed(pivots: np.ndarray) -> np.ndarray:
    """Returns the pivots for rows that are counted from the other end."""
    return (np.sign(pivots) * (len(pivots) + 1 - abs(pivots)))[::-1].astype(np.int32)
