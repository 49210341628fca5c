"""Sequences and optionals, whose lengths are known while importing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.onnx.context import Context, Listed, Operand, axis_of, rule
from trivium.importers.onnx.indexing import gather
from trivium.importers.onnx.shape import split
from trivium.ir.core import Value
from trivium.ir.known import evaluate_known


@rule("SequenceConstruct")
def sequence_construct(ctx: Context, *values: Value) -> Listed:
    """SequenceConstruct(inputs)"""
    return Listed(values)


@rule("SequenceEmpty")
def sequence_empty(ctx: Context, dtype: int = 1) -> Listed:
    """SequenceEmpty(dtype)"""
    return Listed()


@rule("SequenceLength")
def sequence_length(ctx: Context, sequence: Listed) -> Value:
    """SequenceLength(input_sequence)"""
    return ctx.elements(np.array(len(sequence), np.int64))


@rule("SequenceInsert")
def sequence_insert(ctx: Context, sequence: Listed, x: Value, position: Value | None = None) -> Listed:
    """SequenceInsert(input_sequence, tensor, position)"""
    at = len(sequence) if position is None else _place(ctx, position, len(sequence) + 1, len(sequence))
    return Listed((*sequence[:at], x, *sequence[at:]))


@rule("SequenceErase")
def sequence_erase(ctx: Context, sequence: Listed, position: Value | None = None) -> Listed:
    """SequenceErase(input_sequence, position)"""
    at = len(sequence) - 1 if position is None else _place(ctx, position, len(sequence), len(sequence))
    return Listed((*sequence[:at], *sequence[at + 1 :]))


@rule("SequenceAt")
def sequence_at(ctx: Context, sequence: Listed, position: Value) -> Value:
    """SequenceAt(input_sequence, position)"""
    if evaluate_known(position) is None and len({x.type for x in sequence}) == 1:
        stacked = ctx.concatenate([ctx.unsqueeze(x, [0]) for x in sequence], 0)
        return gather(ctx, stacked, ctx.reshape(position, ()))
    return sequence[_place(ctx, position, len(sequence), len(sequence))]


def _place(ctx: Context, position: Value, count: int, length: int) -> int:
    """Returns a position, which counts from the end if it is negative."""
    (place,) = ctx.known_ints(position, "position")
    found = place + length if place < 0 else place
    if not 0 <= found < count:
        ctx.unsupported("position", place, f"a place in a sequence of {length}")
    return found


@rule("SplitToSequence")
def split_to_sequence(ctx: Context, x: Value, sizes: Value | None = None, axis: int = 0, keepdims: int = 1) -> Listed:
    """SplitToSequence(input, split, axis, keepdims)"""
    axis = axis_of(axis, x.type.rank)
    if sizes is None:
        parts = [ctx.slice(x, axis, i, i + 1) for i in range(_known_extent(ctx, x, axis))]
        return Listed(parts if keepdims else [ctx.squeeze(part, [axis]) for part in parts])
    if sizes.type.rank:
        return Listed(split(ctx, x, sizes, axis))
    (each,), extent = ctx.known_ints(sizes, "split"), _known_extent(ctx, x, axis)
    if each < 1:
        ctx.unsupported("split", each, "a positive number")
    return Listed(ctx.slice(x, axis, i, min(i + each, extent)) for i in range(0, extent, each))


def _known_extent(ctx: Context, x: Value, axis: int) -> int:
    """Returns the extent that the number of parts of `x` follows from."""
    extent = x.type.shape[axis]
    if extent is None:
        ctx.unsupported("input", f"type {x.type}", f"an extent of dimension {axis} that is known while importing")
    return extent


@rule("ConcatFromSequence")
def concat_from_sequence(ctx: Context, sequence: Listed, axis: int, new_axis: int = 0) -> Value:
    """ConcatFromSequence(input_sequence, axis, new_axis)"""
    if not sequence:
        ctx.unsupported("input_sequence", "no tensors", "at least one")
    place = axis_of(axis, sequence[0].type.rank + new_axis)
    return ctx.concatenate([ctx.unsqueeze(x, [place]) for x in sequence] if new_axis else sequence, place)


@rule("OptionalHasElement")
def optional_has_element(ctx: Context, x: Operand = None) -> Value:
    """OptionalHasElement(input)"""
    return ctx.elements(np.array(x is not None))


@rule("OptionalGetElement")
def optional_get_element(ctx: Context, x: Operand) -> Value | Listed:
    """OptionalGetElement(input)"""
    if x is None:
        ctx.unsupported("input", "no value", "an optional with one")
    return x


@rule("Optional")
def optional(ctx: Context, x: Operand = None, type: object = None) -> Sequence[Operand]:
    """Optional(input, type)"""
    return [x]
