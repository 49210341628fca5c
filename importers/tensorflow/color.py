"""Colours of images, and local contrast: the last dimension is red, green and blue, or hue, saturation and value."""

from __future__ import annotations

from trivium.importers.tensorflow.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32


@rule("RGBToHSV")
def rgb_to_hsv(ctx: Context, images: Value) -> Value:
    """RGBToHSV(images) -> output"""
    red, green, blue = _channels(ctx, images)
    value = ctx.binary(ops.Maximum, ctx.binary(ops.Maximum, red, green), blue)
    span = ctx.minus(value, ctx.binary(ops.Minimum, ctx.binary(ops.Minimum, red, green), blue))
    zero, sixth = ctx.constant_like(value, 0), 1 / 6
    saturation = ctx.select(ctx.compare("GT", value, zero), ctx.over(span, value), zero)
    norm = ctx.over(ctx.constant_like(value, sixth), span)
    hue = ctx.plus(ctx.times(norm, ctx.minus(red, green)), ctx.constant_like(value, 4 * sixth))
    at_green = ctx.plus(ctx.times(norm, ctx.minus(blue, red)), ctx.constant_like(value, 2 * sixth))
    hue = ctx.select(ctx.compare("EQ", green, value), at_green, hue)
    hue = ctx.select(ctx.compare("EQ", red, value), ctx.times(norm, ctx.minus(green, blue)), hue)
    hue = ctx.select(ctx.compare("GT", span, zero), hue, zero)
    below = ctx.compare("LT", hue, zero)
    return _joined(ctx, ctx.select(below, ctx.plus(hue, ctx.constant_like(hue, 1)), hue), saturation, value)


@rule("HSVToRGB")
def hsv_to_rgb(ctx: Context, images: Value) -> Value:
    """HSVToRGB(images) -> output"""
    hue, saturation, value = _channels(ctx, images)
    rest = ctx.minus(ctx.constant_like(hue, 1), saturation)
    tones = _tones(ctx, hue)
    return _joined(ctx, *(ctx.times(ctx.plus(rest, ctx.times(saturation, on)), value) for on in tones))


def _tones(ctx: Context, hue: Value) -> list[Value]:
    """Returns how far each channel is on, from 0 to 1: where its distance from the hue on the circle is small."""
    zero, one, two = (ctx.constant_like(hue, number) for number in range(3))
    around = ctx.scaled(hue, 6)

    def away(place: float) -> Value:
        return ctx.add(ops.Abs(ctx.minus(around, ctx.constant_like(around, place))))

    distances = [ctx.minus(away(3), one), *(ctx.minus(two, away(place)) for place in (2, 4))]
    return [ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, x, zero), one) for x in distances]


@rule("AdjustHue")
def adjust_hue(ctx: Context, images: Value, delta: Value) -> Value:
    """AdjustHue(images, delta) -> output"""
    wide = ctx.convert(images, F32)
    last = [images.type.rank - 1]
    least, most = (ctx.reduce(op, wide, last, keep=True) for op in (ops.Minimum, ops.Maximum))
    turned = ctx.plus(_channels(ctx, rgb_to_hsv(ctx, wide))[0], delta)
    turned = ctx.minus(turned, ctx.add(ops.Floor(turned)))
    # The least and the largest channel stay as they are, so that colours may be negative.
    span = ctx.minus(most, least)
    channels = (ctx.plus(least, ctx.times(span, on)) for on in _tones(ctx, turned))
    return ctx.convert(_joined(ctx, *channels), images.type.element_type)


@rule("AdjustSaturation")
def adjust_saturation(ctx: Context, images: Value, scale: Value) -> Value:
    """AdjustSaturation(images, scale) -> output"""
    hue, saturation, value = _channels(ctx, rgb_to_hsv(ctx, ctx.convert(images, F32)))
    zero, one = ctx.constant_like(hue, 0), ctx.constant_like(hue, 1)
    scaled = ctx.binary(ops.Minimum, ctx.binary(ops.Maximum, ctx.times(saturation, scale), zero), one)
    return ctx.convert(hsv_to_rgb(ctx, _joined(ctx, hue, scaled, value)), images.type.element_type)


@rule("AdjustContrastv2")
def adjust_contrast(ctx: Context, images: Value, contrast_factor: Value) -> Value:
    """AdjustContrastv2(images, contrast_factor) -> output"""
    kind = images.type.element_type
    wide = ctx.convert(images, F32)
    rank = images.type.rank
    mean = ctx.mean(wide, [rank - 3, rank - 2], keep=True)
    return ctx.convert(ctx.plus(ctx.times(ctx.minus(wide, mean), contrast_factor), mean), kind)


@rule("LRN")
def local_response_normalization(
    ctx: Context, input: Value, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> Value:
    """LRN(input; depth_radius=5, bias=1, alpha=1, beta=0.5) -> output"""
    kind = input.type.element_type
    x = ctx.convert(input, F32)
    power = ctx.add(ops.Power(_strength(ctx, x, depth_radius, bias, alpha), ctx.full_like(x, -beta)))
    return ctx.convert(ctx.times(x, power), kind)


@rule("LRNGrad")
def local_response_normalization_grad(
    ctx: Context,
    input_grads: Value,
    input_image: Value,
    output_image: Value,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Value:
    """LRNGrad(input_grads, input_image, output_image; depth_radius=5, bias=1, alpha=1, beta=0.5) -> output"""
    kind = input_image.type.element_type
    dy, x, y = (ctx.convert(value, F32) for value in (input_grads, input_image, output_image))
    strength = _strength(ctx, x, depth_radius, bias, alpha)
    direct = ctx.times(dy, ctx.add(ops.Power(strength, ctx.full_like(x, -beta))))
    others = _near(ctx, ctx.times(dy, ctx.over(y, strength)), depth_radius)
    return ctx.convert(ctx.minus(direct, ctx.times(ctx.scaled(x, 2 * alpha * beta), others)), kind)


def _strength(ctx: Context, x: Value, radius: int, bias: float, alpha: float) -> Value:
    return ctx.plus(ctx.scaled(_near(ctx, ctx.times(x, x), radius), alpha), ctx.constant_like(x, bias))


def _near(ctx: Context, x: Value, radius: int) -> Value:
    """Returns the sums over the channels at most a radius away."""
    channels = ctx.extent(x, x.type.rank - 1)
    apart = ctx.add(ops.Abs(ctx.minus(ctx.iota((channels, channels), 0), ctx.iota((channels, channels), 1))))
    band = ctx.convert(ctx.compare("LE", apart, ctx.constant_like(apart, radius)), F32)
    return ctx.dot(x, band, ([x.type.rank - 1], [0]))


def _channels(ctx: Context, images: Value) -> list[Value]:
    last = images.type.rank - 1
    return [ctx.slice(images, last, i, i + 1) for i in range(3)]


def _joined(ctx: Context, *channels: Value) -> Value:
    return ctx.concatenate(channels, channels[0].type.rank - 1)
