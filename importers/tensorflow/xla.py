"""Ops of XLA inside TensorFlow, which are ops of the language."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers.tensorflow.context import Context, Known, Tensor, rule
from trivium.importers.tensorflow.contraction import einsum
from trivium.ir import ops
from trivium.ir.core import Value


@rule("XlaOptimizationBarrier")
def optimization_barrier(ctx: Context, input: list[Value]) -> Sequence[Value]:
    """XlaOptimizationBarrier(input...) -> output..."""
    return list(ctx.add(ops.OptimizationBarrier(input)))


@rule("XlaSharding")
def sharding(ctx: Context, input: Tensor, *, sharding: str, unspecified_dims: tuple[int, ...]) -> Tensor:
    """XlaSharding(input; sharding="", unspecified_dims=[]) -> output: on one device, the operand"""
    return input


@rule("XlaPad")
def pad(
    ctx: Context,
    input: Value,
    padding_value: Value,
    padding_low: Known,
    padding_high: Known,
    padding_interior: Known,
) -> Value:
    """XlaPad(input, padding_value, padding_low, padding_high, padding_interior) -> output"""
    low, high, interior = (x.tolist() for x in (padding_low, padding_high, padding_interior))
    return ctx.pad(input, low, high, padding_value, interior)


@rule("XlaEinsum")
def xla_einsum(ctx: Context, a: Value, b: Value, *, equation: str) -> Value:
    """XlaEinsum(a, b; equation) -> product"""
    return einsum(ctx, [a, b], equation=equation)


@rule("XlaReducePrecision")
def reduce_precision(ctx: Context, operand: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    """XlaReducePrecision(operand; exponent_bits, mantissa_bits) -> output"""
    return ctx.add(ops.ReducePrecision(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits))


@rule("XlaSort")
def sort(ctx: Context, input: Value) -> Value:
    """XlaSort(input) -> output"""
    return ctx.sort([input], input.type.rank - 1)[0]


@rule("XlaKeyValueSort")
def key_value_sort(ctx: Context, keys: Value, values: Value) -> Sequence[Value]:
    """XlaKeyValueSort(keys, values) -> sorted_keys, sorted_values"""
    return ctx.sort([keys, values], keys.type.rank - 1)
