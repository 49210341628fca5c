"""Ops that are no longer in the specification, but still occur in files: `broadcast`, `dot`, `einsum`, `unary_einsum`,
`torch_index_select`."""

from __future__ import annotations

import re

import numpy as np

from trivium.ir.codecs import Ints
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    expect_at_least,
    expect_element,
    expect_same_baseline,
    expect_same_element,
    expect_shape,
    expect_tensor,
    expect_within,
    shaped,
)
from trivium.ir.ops.products import Precision, check_precision, narrow, wide
from trivium.ir.ops.regions import is_promotable
from trivium.ir.types import TensorType, dimensions_compatible, is_integer, is_quantized, shapes_compatible

__all__ = ["Broadcast", "Dot", "Einsum", "TorchIndexSelect", "UnaryEinsum"]


class Broadcast(Op, name="stablehlo.broadcast", traits={PURE}):
    """The operand, repeated along new dimensions of `broadcast_sizes` before its own."""

    operand: Operand
    broadcast_sizes: Ints
    result: Result

    def infer(operand, broadcast_sizes):
        expect_tensor("I1", "operand", operand)
        bounds = (*(None for _ in broadcast_sizes), *operand.bounds)
        return shaped((*broadcast_sizes, *operand.shape), operand.element_type, bounds)

    def check(operand, broadcast_sizes, result):
        expect_tensor("I1", "operand", operand)
        expect_same_element("C1", operand=operand, result=result)
        expect_at_least("C2", "broadcast_sizes", broadcast_sizes, 0)
        expect_shape("C3", "result", result, (*broadcast_sizes, *operand.shape))

    def evaluate(operand, broadcast_sizes):
        return np.broadcast_to(operand, (*broadcast_sizes, *operand.shape))


class Dot(Op, name="stablehlo.dot", traits={PURE, EXPRESSED}):
    """The product of vectors and matrices: sums over the last dimension of `lhs` and the first of `rhs`."""

    lhs: Operand
    rhs: Operand
    precision_config: tuple[Precision, ...] | None = None
    result: Result

    def infer(lhs, rhs):
        _check_factors(lhs, rhs)
        return TensorType((*lhs.shape[:-1], *rhs.shape[1:]), lhs.element_type)

    def check(lhs, rhs, precision_config, result):
        _check_factors(lhs, rhs)
        if not is_quantized(rhs.element_type):
            expect_same_element("C3", lhs=lhs, rhs=rhs)
        check_precision("C4", precision_config)
        expect_shape("C5", "result", result, (*lhs.shape[:-1], *rhs.shape[1:]))

    def evaluate(lhs, rhs, result):
        return narrow(np.dot(wide(lhs), wide(rhs)), result.dtype)


def _check_factors(lhs: TensorType, rhs: TensorType) -> None:
    for name, kind in (("lhs", lhs), ("rhs", rhs)):
        expect_tensor("I1", name, kind, per_axis=name == "rhs")
        if kind.rank not in (1, 2):
            fail("C1", f"{name} has type {kind}, expected rank 1 or 2")
    if not dimensions_compatible(lhs.shape[-1], rhs.shape[0]):
        fail("C2", f"lhs has type {lhs}, rhs has {rhs}; expected the last extent of one to be the first of the other")


# Einstein's sums


class Einsum(Op, name="stablehlo.einsum", traits={PURE, EXPRESSED}):
    """Sums of products, with a letter for each dimension: `ab,bc->ac` is a matrix product."""

    lhs: Operand
    rhs: Operand
    einsum_config: str
    result: Result

    def check(lhs, rhs, einsum_config, result):
        expect_tensor("I1", "lhs", lhs)
        expect_tensor("I2", "rhs", rhs)
        expect_same_baseline("C1", lhs=lhs, rhs=rhs)
        expect_tensor("O1", "result", result)
        # As for other products, the result may be wider.
        if not is_promotable(lhs.element_type, result.element_type):
            expect_same_baseline("C1", lhs=lhs, result=result)
        _check_letters(einsum_config, {"lhs": lhs, "rhs": rhs}, result)

    def evaluate(lhs, rhs, einsum_config, result):
        return narrow(np.einsum(einsum_config, wide(lhs), wide(rhs)), result.dtype)


class UnaryEinsum(Op, name="stablehlo.unary_einsum", traits={PURE, EXPRESSED}):
    """Sums of elements, with a letter for each dimension: `ab->a` sums the rows of a matrix."""

    operand: Operand
    einsum_config: str
    result: Result

    def check(operand, einsum_config, result):
        expect_tensor("I1", "operand", operand)
        expect_same_baseline("C1", operand=operand, result=result)
        _check_letters(einsum_config, {"operand": operand}, result)

    def evaluate(operand, einsum_config, result):
        return narrow(np.einsum(einsum_config, wide(operand)), result.dtype)


_LETTERS = re.compile(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*")


def _check_letters(einsum_config: str, operands: dict[str, TensorType], result: TensorType) -> None:
    """Checks that every tensor has letters, and that each letter stands for one extent."""
    inputs, arrow, output = einsum_config.replace(" ", "").partition("->")
    lists = [*inputs.split(","), output]
    if not arrow or len(lists) != len(operands) + 1 or not all(map(_LETTERS.fullmatch, lists)):
        fail("C2", f"einsum_config has {einsum_config!r}, expected letters for {', '.join(operands)} -> result")
    extents: dict[str, int | None] = {}
    for letters, (name, kind) in zip(lists, {**operands, "result": result}.items(), strict=True):
        count = len(letters.replace("...", ""))
        if kind.rank < count or ("..." not in letters and kind.rank > count):
            fail("C3", f"{name} has type {kind}, einsum_config has {letters!r} for its dimensions")
        before, _, after = letters.partition("...")
        named = [*zip(before, kind.shape, strict=False), *zip(after[::-1], kind.shape[::-1], strict=False)]
        for letter, extent in named:
            if not dimensions_compatible(extents.get(letter), extent):
                fail("C4", f"{name} has type {kind}, where {letter!r} is {extent}, elsewhere it is {extents[letter]}")
            extents[letter] = extent if extent is not None else extents.get(letter)
    unknown = set(output.replace("...", "")) - set(inputs)
    if unknown or len(set(output)) < len(output.replace("...", "")):
        fail("C2", f"einsum_config has {einsum_config!r}, expected each letter of the result once, from the operands")


class TorchIndexSelect(Op, name="stablehlo.torch_index_select", traits={PURE}):
    """The slices of the operand along `dim` that `index` lists, for each index of the first `batch_dims` dimensions.
    Indices are clamped to the extent."""

    operand: Operand
    index: Operand
    dim: int
    batch_dims: int
    result: Result

    def infer(operand, index, dim, batch_dims):
        _check_selection(operand, index, dim, batch_dims)
        return TensorType(_selected_shape(operand, index, dim, batch_dims), operand.element_type)

    def check(operand, index, dim, batch_dims, result):
        _check_selection(operand, index, dim, batch_dims)
        expect_same_element("C4", operand=operand, result=result)
        expect_shape("C5", "result", result, _selected_shape(operand, index, dim, batch_dims))

    def evaluate(operand, index, dim, batch_dims):
        index = np.clip(index.astype(np.int64), 0, operand.shape[dim] - 1)
        selected = np.empty(_selected_shape(operand, index, dim, batch_dims), operand.dtype)
        for batch in np.ndindex(index.shape[:batch_dims]):
            selected[batch] = np.take(operand[batch], index[batch], dim - batch_dims)
        return selected


def _check_selection(operand: TensorType, index: TensorType, dim: int, batch_dims: int) -> None:
    expect_tensor("I1", "operand", operand)
    expect_element("I2", "index", index, is_integer)
    expect_within("C1", "dim", (dim,), operand.rank)
    if not 0 <= batch_dims <= min(dim, index.rank):
        fail("C2", f"batch_dims has {batch_dims}, expected at least 0, and at most dim and the rank of index")
    if not shapes_compatible(operand.shape[:batch_dims], index.shape[:batch_dims]):
        fail("C3", f"index has type {index}, operand has {operand}; expected the same first {batch_dims} extents")


def _selected_shape(operand, index, dim: int, batch_dims: int) -> tuple[int | None, ...]:
    """Returns the operand's shape with the dimension `dim` replaced by those of `index` after its batch dimensions."""
    return (*operand.shape[:dim], *index.shape[batch_dims:], *operand.shape[dim + 1 :])
