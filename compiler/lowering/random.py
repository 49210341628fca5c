"""Random bits, as kernels: every counter is encrypted by itself, so that draws are independent loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.compiler.kernel import KernelBuilder, bit_width
from trivium.compiler.kernel import Value as Register
from trivium.compiler.lowering.context import Context
from trivium.compiler.lowering.elementwise import bits
from trivium.compiler.lowering.index import Indices, Variable, constant, fresh, linearize, places
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import dtype_of
from trivium.ir import ops

Words = Sequence[Register]


@kernel(ops.RngBitGenerator)
def rng_bit_generator(ctx: Context, op: ops.RngBitGenerator) -> None:
    draw = _three_fry if op.rng_algorithm is ops.RngAlgorithm.THREE_FRY else _philox
    state = [ctx.element(op.initial_state, (constant(word),)) for word in range(op.initial_state.type.shape[0])]
    for word, value in enumerate(draw(ctx, op, state)):  # type: ignore[arg-type]
        ctx.store(op.output_state, (constant(word),), value)


def _store(ctx: Context, op: ops.RngBitGenerator, at: Indices, word: Register) -> None:
    ctx.store(op.output, at, _of_type(ctx, op, word))


def _of_type(ctx: Context, op: ops.RngBitGenerator, word: Register) -> Register:
    """The low bits of a word, as a value of the output's type."""
    dtype = dtype_of(op.output.type.element_type)
    return bits(ctx, ctx.b.convert(word, f"ui{bit_width(dtype)}"), dtype)


def _halves(b: KernelBuilder, word: Register) -> tuple[Register, Register]:
    """The low and the high 32 bits."""
    return b.convert(word, "ui32"), b.convert(b.apply("shift_right_logical", word, 32), "ui32")


def _joined(b: KernelBuilder, low: Register, high: Register) -> Register:
    return b.apply("or", b.convert(low, "ui64"), b.apply("shift_left", b.convert(high, "ui64"), 32))


# Threefry


def _three_fry(ctx: Context, op: ops.RngBitGenerator, state: Words) -> Words:
    """64-bit values take a counter each; narrower ones share one between two neighbours along an even dimension."""
    shape = op.output.type.shape
    wide = op.output.type.dtype.itemsize == 8
    axis = _paired_axis(shape)
    half = shape if wide or not shape else (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    variables = fresh(half)
    with ctx.parallel(variables):
        at = places(variables)
        counter = ctx.b.add(state[1], ctx.b.convert(ctx.position(linearize(at, half)), "ui64"))
        low, high = three_fry_2x32(ctx.b, _halves(ctx.b, state[0]), _halves(ctx.b, counter))
        if wide or not shape:
            _store(ctx, op, at, _joined(ctx.b, low, high) if wide else low)
        else:
            _store_pair(ctx, op, at, axis, (low, high))
    return state[0], ctx.b.add(state[1], math.prod(half))


def _paired_axis(shape: Sequence[int]) -> int:
    even = [axis for axis, extent in enumerate(shape) if extent % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=shape.__getitem__, default=0)


def _store_pair(ctx: Context, op: ops.RngBitGenerator, at: Indices, axis: int, words: Words) -> None:
    for number, word in enumerate(words):
        along = at[axis] * 2 + number
        target = (*at[:axis], along, *at[axis + 1 :])
        extent = op.output.type.shape[axis]
        if along.range[1] < extent:
            _store(ctx, op, target, word)
        else:
            with ctx.block(ctx.b.if_(ctx.b.compare("LT", ctx.position(along), extent))):
                _store(ctx, op, target, word)


def three_fry_2x32(b: KernelBuilder, key: Words, counter: Words) -> tuple[Register, Register]:
    """Threefry-2x32 with 20 rounds: the words of `counter`, encrypted with those of `key`."""
    keys = (key[0], key[1], b.apply("xor", b.apply("xor", key[0], key[1]), 0x1BD11BDA))
    first, second = b.add(counter[0], keys[0]), b.add(counter[1], keys[1])
    for group in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            first = b.add(first, second)
            left = b.apply("shift_left", second, distance)
            right = b.apply("shift_right_logical", second, 32 - distance)
            second = b.apply("xor", first, b.apply("or", left, right))
        first = b.add(first, keys[(group + 1) % 3])
        second = b.add(b.add(second, keys[(group + 2) % 3]), group + 1)
    return first, second


# Philox


def _philox(ctx: Context, op: ops.RngBitGenerator, state: Words) -> Words:
    """The state is a key and a counter of 128 bits. With two words, the key doubles as the counter's high word."""
    b, shape = ctx.b, op.output.type.shape
    count, wide = math.prod(shape), op.output.type.dtype.itemsize == 8
    output = ctx.buffer(op.output, (count,), "out")
    low, high = (state[1], state[2]) if len(state) == 3 else (state[1], state[0])
    each = 2 if wide else 4
    blocks = Variable(-(-count // each))
    with ctx.parallel([blocks]):
        block = places([blocks])[0]
        step = b.add(low, b.convert(ctx.position(block), "ui64"))
        carried = b.add(high, b.convert(b.compare("LT", step, low), "ui64"))
        words = philox_4x32(b, _halves(b, state[0]), (*_halves(b, step), *_halves(b, carried)))
        if wide:
            words = [_joined(b, words[0], words[1]), _joined(b, words[2], words[3])]
        for number, word in enumerate(words):
            position = block * each + number
            if position.range[1] < count:
                ctx.write(output, (position,), _of_type(ctx, op, word))
            else:
                with ctx.block(b.if_(b.compare("LT", ctx.position(position), count))):
                    ctx.write(output, (position,), _of_type(ctx, op, word))
    following = b.add(low, blocks.extent)
    overflow = b.convert(b.compare("LT", following, low), "ui64")
    return [state[0], following, b.add(high, overflow)][: len(state)]


def philox_4x32(b: KernelBuilder, key: Words, counter: Words) -> list[Register]:
    """Philox-4x32 with 10 rounds."""
    first, second = key
    words = list(counter)
    for _ in range(10):
        low_a, high_a = _halves(b, b.multiply(b.convert(words[0], "ui64"), 0xD2511F53))
        low_b, high_b = _halves(b, b.multiply(b.convert(words[2], "ui64"), 0xCD9E8D57))
        one = b.apply("xor", b.apply("xor", high_b, words[1]), first)
        other = b.apply("xor", b.apply("xor", high_a, words[3]), second)
        words = [one, low_b, other, low_a]
        first, second = b.add(first, 0x9E3779B9), b.add(second, 0xBB67AE85)
    return words
