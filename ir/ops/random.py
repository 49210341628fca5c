"""Random bits, identical to XLA's: the counter-based generators of Salmon et al., "Parallel random numbers: as easy as
1, 2, 3" (SC 2011), with XLA's layout of counters and results."""

from __future__ import annotations

import numpy as np

from trivium.ir.attributes import Enumeration, enumeration
from trivium.ir.declare import PURE, Op, Operand, Result
from trivium.ir.errors import ConstraintKind, fail
from trivium.ir.ops.common import (
    bits_of,
    expect_compatible,
    expect_element,
    expect_element_is,
    expect_same_element,
    expect_sizes,
    expect_static,
    expect_tensor,
)
from trivium.ir.ops.shape import check_extents, known_ints
from trivium.ir.types import UI64, TensorType, is_boolean, is_float, is_integer

__all__ = ["Rng", "RngAlgorithm", "RngBitGenerator", "RngDistribution"]


@enumeration("stablehlo.rng_algorithm")
class RngAlgorithm(Enumeration):
    """The generator; `DEFAULT` is Philox, as on XLA's CPU."""

    DEFAULT = "DEFAULT"
    THREE_FRY = "THREE_FRY"
    PHILOX = "PHILOX"


@enumeration("stablehlo.rng_distribution")
class RngDistribution(Enumeration):
    """The distribution of `rng`."""

    UNIFORM = "UNIFORM"
    NORMAL = "NORMAL"


class RngBitGenerator(Op, name="stablehlo.rng_bit_generator", traits={PURE}):
    """Random bits of the output's type, and the state for the next draw."""

    rng_algorithm: RngAlgorithm
    initial_state: Operand
    output_state: Result
    output: Result

    def check(rng_algorithm, initial_state, output_state, output):
        expect_tensor("I2", "initial_state", initial_state, rank=1)
        expect_element_is("I2", "initial_state", initial_state, UI64)
        expect_compatible("C1", initial_state=initial_state, output_state=output_state)
        sizes = (2,) if rng_algorithm is RngAlgorithm.THREE_FRY else (2, 3)
        if initial_state.shape[0] not in (None, *sizes):
            fail("C2", f"initial_state has {initial_state.shape[0]} words, {rng_algorithm} expects {sizes}")
        expect_element("O2", "output", output, is_integer, is_float)
        expect_static("O2", "output", output)

    def evaluate(rng_algorithm, initial_state, output):
        generate = _three_fry if rng_algorithm is RngAlgorithm.THREE_FRY else _philox
        bits, state = generate(initial_state, output.static_shape, output.dtype.itemsize)
        return state, _as_type(bits, output).reshape(output.shape)


class Rng(Op, name="stablehlo.rng"):
    """Random numbers from hidden state: uniform between `a` and `b`, or normal with mean `a` and deviation `b`."""

    a: Operand
    b: Operand
    shape: Operand
    rng_distribution: RngDistribution
    result: Result

    def check(op, a, b, shape, rng_distribution, result):
        expect_element("I1", "a", a, is_boolean, is_integer, is_float)
        expect_tensor("I1", "a", a, rank=0)
        expect_tensor("I2", "b", b, rank=0)
        expect_sizes("I3", "shape", shape)
        expect_same_element("C1", a=a, b=b, result=result)
        if rng_distribution is RngDistribution.NORMAL:
            expect_element("C2", "a", a, is_float)
        if shape.shape[0] not in (None, result.rank):
            fail("C3", f"shape has {shape.shape[0]} entries, the result has rank {result.rank}")
        if (extents := known_ints(op.shape)) is not None:
            check_extents("C3", "shape", extents, result)

    def evaluate(a, b, shape, rng_distribution, result, context):
        extents = tuple(shape.tolist())
        check_extents("C3", "shape", extents, result, ConstraintKind.RUN_TIME)
        if rng_distribution is RngDistribution.NORMAL:
            return (float(a) + float(b) * context.random.standard_normal(extents)).astype(a.dtype)
        if is_float(result.element_type):
            drawn = context.random.uniform(float(a), float(b), extents).astype(a.dtype)
            # Some are rounded up to b, which is not in the interval.
            return np.where(drawn < b, drawn, a)
        wide = np.uint64 if a.dtype == np.uint64 else np.int64
        return context.random.integers(int(a), int(b), extents, wide).astype(a.dtype)


def _as_type(bits: np.ndarray, kind: TensorType) -> np.ndarray:
    """Returns the low bits of each word as an element."""
    mask = np.uint64((1 << bits_of(kind.element_type)) - 1)
    return (bits & mask).astype(f"u{kind.dtype.itemsize}").view(kind.dtype)


def _halves(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the low and the high 32 bits of 64-bit words."""
    return words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)


def _join(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


# Threefry


def _three_fry(state: np.ndarray, shape: tuple[int, ...], itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """The state is a key and a counter. Each 64-bit value takes one counter; narrower values share one between two
    neighbours along an even dimension."""
    if itemsize == 8:
        (low, high), state = _three_fry_words(state, int(np.prod(shape, dtype=np.int64)))
        return _join(low, high).reshape(shape), state
    if not shape:
        (low, _), state = _three_fry_words(state, 1)
        return low.reshape(()), state
    even = [axis for axis, extent in enumerate(shape) if extent % 2 == 0]
    axis = even[0] if even else int(np.argmax(shape))
    half = (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    words, state = _three_fry_words(state, int(np.prod(half, dtype=np.int64)))
    pairs = np.stack([word.reshape(half) for word in words], axis + 1)
    pairs = pairs.reshape(*shape[:axis], 2 * half[axis], *shape[axis + 1 :])
    return np.take(pairs, range(shape[axis]), axis), state


def _three_fry_words(state: np.ndarray, count: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    counters = state[1] + np.arange(count, dtype=np.uint64)
    words = three_fry_2x32(_halves(state[0]), _halves(counters))
    return words, np.array([state[0], state[1] + np.uint64(count)], np.uint64)


def three_fry_2x32(key, counter):
    """Threefry-2x32 with 20 rounds: the words of `counter`, encrypted with those of `key`."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    first, second = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            first = first + second
            second = first ^ (second << np.uint32(distance) | second >> np.uint32(32 - distance))
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + np.uint32(group + 1)
    return first, second


# Philox


def _philox(state: np.ndarray, shape: tuple[int, ...], itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """The state is a key and a 128-bit counter. With two words, the key is also the counter's high word."""
    count = int(np.prod(shape, dtype=np.int64))
    low, high = state[1:3] if len(state) == 3 else state[::-1]
    blocks = -(-count * (2 if itemsize == 8 else 1) // 4)
    steps = low + np.arange(blocks, dtype=np.uint64)
    carried = high + (steps < low).astype(np.uint64)
    words = philox_4x32(_halves(state[0]), (*_halves(steps), *_halves(carried)))
    if itemsize == 8:
        words = (_join(words[0], words[1]), _join(words[2], words[3]))
    following = low + np.uint64(blocks)
    after = [state[0], following, high + np.uint64(following < low)]
    return np.stack(words, 1).reshape(-1)[:count], np.array(after[: len(state)], np.uint64)


@np.errstate(over="ignore")  # NumPy warns about scalars that wrap around
def philox_4x32(key, counter):
    """Philox-4x32 with 10 rounds."""
    first, second = key
    words = counter
    for _ in range(10):
        low_a, high_a = _halves(words[0].astype(np.uint64) * np.uint64(0xD2511F53))
        low_b, high_b = _halves(words[2].astype(np.uint64) * np.uint64(0xCD9E8D57))
        words = (high_b ^ words[1] ^ first, low_b, high_a ^ words[3] ^ second, low_a)
        first, second = first + np.uint32(0x9E3779B9), second + np.uint32(0xBB67AE85)
    return words
