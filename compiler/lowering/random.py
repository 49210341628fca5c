"""Random bits, as kernels: every counter is encrypted separately, so draws are independent iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.compiler.kernel import KernelBuilder, Register, bit_width
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.elementwise import bits
from trivium.compiler.lowering.index import Indices, Variable, constant, fresh, indices_of, linearize
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.rules import kernel
from trivium.compiler.lowering.scalars import dtype_of
from trivium.ir import ops

Words = Sequence[Register]


@kernel(ops.RngBitGenerator)
def rng_bit_generator(launches: Launches, op: ops.RngBitGenerator) -> None:
    """Emits the draws, then the next state."""
    three_fry = op.rng_algorithm is ops.RngAlgorithm.THREE_FRY
    draw, following = (_three_fry, _three_fry_state) if three_fry else (_philox, _philox_state)
    if op.output.type.size:
        with launches.kernel() as ctx:
            draw(ctx, op, _state(ctx, op))
    with launches.kernel("_state") as ctx:
        for word, value in enumerate(following(ctx.b, op, _state(ctx, op))):
            ctx.store(op.output_state, (constant(word),), value)


def _state(ctx: LoweringContext, op: ops.RngBitGenerator) -> Words:
    return [ctx.real(op.initial_state, (constant(word),)) for word in range(op.initial_state.type.shape[0])]


def _store(ctx: LoweringContext, op: ops.RngBitGenerator, at: Indices, word: Register) -> None:
    ctx.store(op.output, at, _of_type(ctx, op, word))


def _of_type(ctx: LoweringContext, op: ops.RngBitGenerator, word: Register) -> Register:
    """Returns the low bits of a word, as a value of the output's type."""
    dtype = dtype_of(op.output.type.element_type)
    return bits(ctx, ctx.b.convert(word, f"ui{bit_width(dtype)}"), dtype)


def _halves(b: KernelBuilder, word: Register) -> tuple[Register, Register]:
    """Returns the low and the high 32 bits."""
    return b.convert(word, "ui32"), b.convert(b.apply("shift_right_logical", word, 32), "ui32")


def _joined(b: KernelBuilder, low: Register, high: Register) -> Register:
    return b.apply("or", b.convert(low, "ui64"), b.apply("shift_left", b.convert(high, "ui64"), 32))


# Threefry


def _three_fry(ctx: LoweringContext, op: ops.RngBitGenerator, state: Words) -> None:
    shape, wide = op.output.type.shape, _is_wide(op)
    axis, half = _paired_axis(shape), _counters(op)
    variables = fresh(half)
    with ctx.nest(variables):
        at = indices_of(variables)
        counter = ctx.b.add(state[1], ctx.b.convert(ctx.position(linearize(at, half)), "ui64"))
        low, high = three_fry_2x32(ctx.b, _halves(ctx.b, state[0]), _halves(ctx.b, counter))
        if wide or not shape:
            _store(ctx, op, at, _joined(ctx.b, low, high) if wide else low)
        else:
            _store_pair(ctx, op, at, axis, (low, high))


def _three_fry_state(b: KernelBuilder, op: ops.RngBitGenerator, state: Words) -> Words:
    return state[0], b.add(state[1], math.prod(_counters(op)))


def _is_wide(op: ops.RngBitGenerator) -> bool:
    return op.output.type.dtype.itemsize == 8


def _counters(op: ops.RngBitGenerator) -> tuple[int, ...]:
    """Returns the shape of the counters: 64-bit values use one each; of narrower values, two neighbours along an even
    dimension share one."""
    shape = op.output.type.shape
    if _is_wide(op) or not shape:
        return shape
    axis = _paired_axis(shape)
    return *shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :]


def _paired_axis(shape: Sequence[int]) -> int:
    even = [axis for axis, extent in enumerate(shape) if extent % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=shape.__getitem__, default=0)


def _store_pair(ctx: LoweringContext, op: ops.RngBitGenerator, at: Indices, axis: int, words: Words) -> None:
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
    """Threefry-2x32 with 20 rounds: encrypts the words of `counter` with those of `key`."""
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


def _philox(ctx: LoweringContext, op: ops.RngBitGenerator, state: Words) -> None:
    b, count, wide = ctx.b, op.output.type.size, _is_wide(op)
    output = ctx.buffer(op.output, (count,), "out")
    low, high = _counter(state)
    each, blocks = _each(op), Variable(_blocks(op))
    with ctx.nest([blocks]):
        block = indices_of([blocks])[0]
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


def _counter(state: Words) -> tuple[Register, Register]:
    """Returns the counter of a state. The state is a key and a counter of 128 bits; if it has only two words, the key
    is also the counter's high word."""
    return (state[1], state[2]) if len(state) == 3 else (state[1], state[0])


def _each(op: ops.RngBitGenerator) -> int:
    """Returns the number of values per counter."""
    return 2 if _is_wide(op) else 4


def _blocks(op: ops.RngBitGenerator) -> int:
    return -(-op.output.type.size // _each(op))


def _philox_state(b: KernelBuilder, op: ops.RngBitGenerator, state: Words) -> Words:
    low, high = _counter(state)
    following = b.add(low, _blocks(op))
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
