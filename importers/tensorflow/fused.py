"""Ops into which TensorFlow's optimizer fuses several: graphs that it has optimized may have been saved."""

from __future__ import annotations

from trivium.importers.tensorflow.context import Context, rule
from trivium.importers.tensorflow.contraction import matmul
from trivium.importers.tensorflow.convolution import conv2d, depthwise
from trivium.importers.tensorflow.nn import bias_add, fused_batch_norm, leaky_relu, relu
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import is_float


@rule("_FusedConv2D")
def fused_conv2d(
    ctx: Context,
    input: Value,
    filter: Value,
    args: list[Value],
    host_args: list[Value],
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    fused_ops: tuple[str, ...],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Value:
    """_FusedConv2D(input, filter, args..., host_args...; strides, padding, explicit_paddings=[], data_format="NHWC",
    filter_format="HWIO", dilations=[1,1,1,1], use_cudnn_on_gpu=true, fused_ops=[], epsilon=1e-4, leakyrelu_alpha=0.2)
    -> output"""
    if not is_float(input.type.element_type):
        ctx.unsupported("input", input.type, "floats")
    x = conv2d(
        ctx, input, filter, strides=strides, padding=padding, explicit_paddings=explicit_paddings,
        data_format=data_format, dilations=dilations,
    )  # fmt: skip
    return _followed(ctx, x, args, fused_ops, data_format, epsilon, leakyrelu_alpha)


@rule("_FusedDepthwiseConv2dNative")
def fused_depthwise(
    ctx: Context,
    input: Value,
    filter: Value,
    args: list[Value],
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
    fused_ops: tuple[str, ...],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Value:
    """_FusedDepthwiseConv2dNative(input, filter, num_args * args; strides, padding,
    data_format="NHWC", dilations=[1,1,1,1], fused_ops=[], epsilon=1e-4, leakyrelu_alpha=0.2) -> output"""
    x = depthwise(
        ctx, input, filter, strides=strides, padding=padding, explicit_paddings=(),
        data_format=data_format, dilations=dilations,
    )  # fmt: skip
    return _followed(ctx, x, args, fused_ops, data_format, epsilon, leakyrelu_alpha)


@rule("_FusedMatMul")
def fused_matmul(
    ctx: Context,
    a: Value,
    b: Value,
    args: list[Value],
    *,
    transpose_a: bool,
    transpose_b: bool,
    fused_ops: tuple[str, ...],
    epsilon: float,
    leakyrelu_alpha: float,
) -> Value:
    """_FusedMatMul(a, b, num_args * args; transpose_a=false, transpose_b=false, fused_ops=[], epsilon=1e-4,
    leakyrelu_alpha=0.2) -> product"""
    x = matmul(ctx, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return _followed(ctx, x, args, fused_ops, "NHWC", epsilon, leakyrelu_alpha)


def _followed(
    ctx: Context,
    x: Value,
    args: list[Value],
    names: tuple[str, ...],
    data_format: str,
    epsilon: float,
    alpha: float,
) -> Value:
    """Applies ops one after the other; `args` are their further operands."""
    rest = list(args)
    for name in names:
        if name == "BiasAdd":
            x = bias_add(ctx, x, rest.pop(0), data_format=data_format)
        elif name == "Add":
            x = ctx.plus(x, rest.pop(0))
        elif name == "FusedBatchNorm":
            statistics, rest = rest[:4], rest[4:]
            x = fused_batch_norm(
                ctx, x, *statistics, epsilon=epsilon, exponential_avg_factor=1, data_format=data_format,
                is_training=False,
            )[0]  # fmt: skip
        elif name == "LeakyRelu":
            x = leaky_relu(ctx, x, alpha=alpha)
        elif name in ("GeluExact", "GeluApproximate"):
            x = _gelu(ctx, x, name == "GeluExact")
        else:
            x = _applied(ctx, name, x)
    return x


def _gelu(ctx: Context, x: Value, is_exact: bool) -> Value:
    if is_exact:
        inner = ctx.add(ops.Erf(ctx.scaled(x, 0.5**0.5)))
    else:
        cubed = ctx.scaled(ctx.times(x, ctx.times(x, x)), 0.044715)
        inner = ctx.add(ops.Tanh(ctx.scaled(ctx.plus(x, cubed), 0.7978845608028654)))
    return ctx.times(ctx.scaled(x, 0.5), ctx.plus(ctx.constant_like(x, 1), inner))


def _applied(ctx: Context, name: str, x: Value) -> Value:
    """Applies an op of one operand by its rule."""
    apply = rule.find(name)
    if apply is None:
        ctx.unsupported("fused_ops", name, "ops that have a rule")
    return apply(ctx, x)


@rule("_UnaryOpsComposition")
def unary_ops(ctx: Context, x: Value, *, op_names: tuple[str, ...]) -> Value:
    """_UnaryOpsComposition(x; op_names) -> y"""
    for name in op_names:
        x = _applied(ctx, name, x)
    return x


@rule("_FusedBatchNormEx")
def fused_batch_norm_ex(
    ctx: Context,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    side_input: list[Value],
    *,
    epsilon: float,
    exponential_avg_factor: float,
    activation_mode: str,
    data_format: str,
    is_training: bool,
) -> list[Value]:
    """_FusedBatchNormEx(x, scale, offset, mean, variance, num_side_inputs * side_input; epsilon=1e-4,
    exponential_avg_factor=1, activation_mode="Identity", data_format="NHWC", is_training=true) -> y, batch_mean,
    batch_variance, reserve_space_1, reserve_space_2, reserve_space_3"""
    y, *rest = fused_batch_norm(
        ctx, x, scale, offset, mean, variance, epsilon=epsilon, exponential_avg_factor=exponential_avg_factor,
        data_format=data_format, is_training=is_training,
    )  # fmt: skip
    for addend in side_input:
        y = ctx.plus(y, addend)
    return [relu(ctx, y) if activation_mode == "Relu" else y, *rest]
