"""Rewrites of ops that move elements: random chains still compute the same, bit for bit, and become as short as they
should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten, splat
from trivium.compiler.passes.patterns.shape import SHAPE
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.types import I32, tensor, type_of

X = np.random.default_rng(0).permutation(24).astype(np.int32).reshape(2, 3, 4)


def transposed(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    return b.add(ops.Transpose(x, tuple(rng.permutation(x.type.rank).tolist())))


def reshaped(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    shape = list(x.type.static_shape)
    if rng.random() < 0.5:
        shape.insert(int(rng.integers(len(shape) + 1)), 1)
    elif len(shape) > 1:
        at = int(rng.integers(len(shape) - 1))
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    return b.add(ops.Reshape(x, result=tensor(*shape, of=I32)))


def spread(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    extents, at = list(x.type.static_shape), int(rng.integers(x.type.rank + 1))
    extents = [3 if extent == 1 and rng.random() < 0.5 else extent for extent in extents]
    places = [d + (d >= at) for d in range(len(extents))]
    extents.insert(at, int(rng.integers(1, 3)))
    return b.add(ops.BroadcastInDim(x, places, result=tensor(*extents, of=I32)))


def sliced(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    bounds = []
    for extent in x.type.static_shape:
        start = int(rng.integers(extent + 1)) if rng.random() < 0.3 else 0
        limit = int(rng.integers(start, extent + 1)) if rng.random() < 0.3 else extent
        bounds.append((start, limit, int(rng.integers(1, 4)) if rng.random() < 0.5 else 1))
    return b.add(ops.Slice(x, *zip(*bounds, strict=True)))


def reversed_(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    return b.add(ops.Reverse(x, tuple(d for d in range(x.type.rank) if rng.random() < 0.5)))


def joined(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    axis = int(rng.integers(x.type.rank))
    shape = [0 if d == axis else extent for d, extent in enumerate(x.type.static_shape)]
    empty = b.add(ops.Constant(np.zeros(shape, np.int32)))
    return b.add(ops.Concatenate([empty, x, x][: int(rng.integers(2, 4))], axis))


def padded(b: Builder, x: Value, rng: np.random.Generator) -> Value:
    amounts = [rng.integers(0, 2, x.type.rank).tolist() if rng.random() < 0.5 else [0] * x.type.rank for _ in "abc"]
    return b.add(ops.Pad(x, splat(b, 9, tensor(of=I32)), *amounts))


MOVES = [transposed, reshaped, spread, sliced, reversed_, joined, padded]


STARTS: dict[str, Callable] = {
    "argument": lambda b, x: x,
    "splat": lambda b, x: splat(b, 9, x.type),
    "constant": lambda b, x: b.add(ops.Constant(X)),
}


def chain(start: str, rng: np.random.Generator) -> Module:
    def body(b: Builder, x: Value) -> Value:
        value = STARTS[start](b, x)
        for _ in range(6):
            value = MOVES[int(rng.integers(len(MOVES)))](b, value, rng) if value.type.size < 500 else value
        return value

    return program_of([type_of(X)], body)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed: int, start: str) -> None:
    for trial in range(8):
        module = chain(start, np.random.default_rng([seed, trial]))
        assert len(names(rewritten(module, SHAPE, [X]))) <= len(names(module))


def transpose(b, x, *permutation):
    return b.add(ops.Transpose(x, permutation))


def spread_over(b, x, dimensions, *shape):
    return b.add(ops.BroadcastInDim(x, dimensions, result=tensor(*shape, of=I32)))


def join(b, dimension, *values):
    return b.add(ops.Concatenate(values, dimension))


def interleaved(b, x, count):
    return join(b, 3, *[b.add(ops.Reshape(x, result=tensor(2, 3, 4, 1, of=I32))) for _ in range(count)])


def cut(b, x, dimension, start, limit, step=1):
    """Returns a slice of one dimension."""
    starts, limits, steps = [0] * x.type.rank, list(x.type.static_shape), [1] * x.type.rank
    starts[dimension], limits[dimension], steps[dimension] = start, limit, step
    return b.add(ops.Slice(x, starts, limits, steps))


def with_edges(b, x):
    """The last row before the others and the first one after them, then the same for the elements of rows."""
    for dimension in (1, 2):
        extent = x.type.static_shape[dimension]
        x = join(b, dimension, cut(b, x, dimension, extent - 1, extent), x, cut(b, x, dimension, 0, 1))
    return x


def repeated_edges(b, x):
    """The first row twice before the others, then the first element of each row before the others."""
    twice = b.add(ops.BroadcastInDim(cut(b, x, 1, 0, 1), (0, 1, 2), result=tensor(2, 2, 4, of=I32)))
    x = join(b, 1, twice, x)
    return join(b, 2, cut(b, x, 2, 0, 1), x)


def overwritten_edges(b, x):
    """A longer row with both ends assigned, one after the other."""
    zeros = splat(b, 0, tensor(2, 3, 1, of=I32))
    x = join(b, 2, zeros, x, zeros)
    x = join(b, 2, cut(b, x, 2, 4, 5), cut(b, x, 2, 1, 6))
    return join(b, 2, cut(b, x, 2, 0, 5), cut(b, x, 2, 1, 2))


def parts_and_whole(b, x):
    """What others read too stays together."""
    whole = join(b, 2, x, b.add(ops.Negate(x)))
    return [whole, cut(b, whole, 2, 3, 6), cut(b, whole, 0, 0, 1)]


CASES: dict[str, tuple[Callable, list[str]]] = {
    "a slice of one operand": (lambda b, x: cut(b, join(b, 2, x, x), 2, 4, 8), []),
    "every other of one operand": (lambda b, x: cut(b, join(b, 2, x, x), 2, 5, 8, 2), ["slice"]),
    "every other of two operands": (lambda b, x: cut(b, join(b, 2, x, x), 2, 1, 8, 2), ["concatenate", "slice"]),
    "a slice of two operands": (lambda b, x: cut(b, join(b, 2, x, x, x), 2, 1, 8), ["slice", "concatenate"]),
    "a slice of other dimensions": (lambda b, x: cut(b, join(b, 2, x, x), 1, 1, 2), ["slice", "slice", "concatenate"]),
    "the reverse of other dimensions": (
        lambda b, x: b.add(ops.Reverse(b.add(ops.Reverse(join(b, 2, x, x), (1,))), (1, 2))),
        ["reverse", "reverse", "concatenate", "reverse"],
    ),
    "joined twice": (lambda b, x: join(b, 1, x, join(b, 1, x, x)), ["concatenate"]),
    "pairs joined to pairs": (
        lambda b, x: join(b, 2, *[join(b, 2, cut(b, x, 2, n, n + 1), cut(b, x, 2, 3, 4)) for n in range(2)]),
        ["slice"] * 4 + ["concatenate"],
    ),
    "pairs joined to others": (
        lambda b, x: join(b, 2, join(b, 2, cut(b, x, 2, 0, 1), cut(b, x, 2, 3, 4)), x),
        ["slice"] * 2 + ["concatenate"] * 2,
    ),
    "joined otherwise": (lambda b, x: join(b, 1, join(b, 2, x, x), join(b, 2, x, x)), ["concatenate"] * 3),
    "edges that wrap around": (
        with_edges, [*(["slice"] * 2 + ["concatenate"]), *(["slice"] * 3 + ["concatenate"]) * 2, "concatenate"],
    ),
    "edges that are repeated": (
        repeated_edges, ["slice", "broadcast_in_dim", "concatenate", "slice", "slice", "concatenate", "concatenate"],
    ),
    "edges that are assigned": (overwritten_edges, ["slice", "slice", "concatenate"]),
    "slices beside the whole": (parts_and_whole, ["negate", "concatenate", "slice", "slice"]),
    "transposes that undo each other": (lambda b, x: transpose(b, transpose(b, x, 1, 2, 0), 2, 0, 1), []),
    "transposes": (lambda b, x: transpose(b, transpose(b, x, 1, 2, 0), 1, 2, 0), ["transpose"]),
    "a transpose of units": (
        lambda b, x: transpose(b, b.add(ops.Reshape(x, result=tensor(1, 6, 4, of=I32))), 1, 0, 2), ["reshape"],
    ),
    "reshapes": (
        lambda b, x: b.add(ops.Reshape(b.add(ops.Reshape(x, result=tensor(24, of=I32))), result=x.type)), [],
    ),
    "a broadcast of units": (
        lambda b, x: spread_over(b, x, (0, 2, 3), 2, 1, 3, 4), ["reshape"],
    ),
    "a broadcast that swaps": (
        lambda b, x: spread_over(b, x, (0, 2, 1), 2, 4, 3), ["broadcast_in_dim"],
    ),
    "a transposed broadcast": (
        lambda b, x: transpose(b, spread_over(b, x, (1, 2, 3), 5, 2, 3, 4), 1, 2, 3, 0),
        ["broadcast_in_dim"],
    ),
    "reversed twice": (lambda b, x: b.add(ops.Reverse(b.add(ops.Reverse(x, (0, 2))), (2, 0))), []),
    "reversed otherwise": (lambda b, x: b.add(ops.Reverse(b.add(ops.Reverse(x, (0, 2))), (0,))), ["reverse"] * 2),
    "reversed along nothing": (lambda b, x: b.add(ops.Reverse(x, ())), []),
    "padded by nothing": (lambda b, x: b.add(ops.Pad(x, splat(b, 1, tensor(of=I32)), *[(0, 0, 0)] * 3)), []),
    "padded and cut": (
        lambda b, x: b.add(ops.Pad(x, splat(b, 1, tensor(of=I32)), (1, 0, 0), (-1, 0, 0), (0, 0, 0))), ["pad"],
    ),
    "joined alone": (lambda b, x: b.add(ops.Concatenate([x], 1)), []),
    "a slice of all": (lambda b, x: b.add(ops.Slice(x, (0, 0, 0), (2, 3, 4), (1, 1, 1))), []),
    "a dynamic slice of all": (
        lambda b, x: b.add(ops.DynamicSlice(x, [splat(b, 7, tensor(of=I32))] * 3, (2, 3, 4))), [],
    ),
    "a dynamic slice at constants": (
        lambda b, x: b.add(ops.DynamicSlice(x, [splat(b, start, tensor(of=I32)) for start in (-3, 1, 9)], (1, 2, 3))),
        ["slice"],
    ),
    "a dynamic update of all": (
        lambda b, x: b.add(
            ops.DynamicUpdateSlice(splat(b, 5, x.type), x, [splat(b, 7, tensor(of=I32))] * 3)
        ), [],
    ),
    "a transposed stack": (
        lambda b, x: transpose(b, b.add(ops.Concatenate([b.add(ops.Reshape(x, result=tensor(1, 2, 3, 4, of=I32)))] * 3,
        0)), 1, 2, 3, 0), ["reshape"] * 3 + ["concatenate"],
    ),
    "a stack transposed otherwise": (
        lambda b, x: transpose(b, b.add(ops.Concatenate([b.add(ops.Reshape(x, result=tensor(1, 2, 3, 4, of=I32)))] * 3,
        0)), 2, 1, 3, 0), ["reshape", "concatenate", "transpose"],
    ),
    "transposed rows of two": (
        lambda b, x: transpose(b, interleaved(b, x, 2), 1, 2, 0, 3), ["transpose", "reshape"] * 2 + ["concatenate"],
    ),
    "rows of two that become columns": (
        lambda b, x: transpose(b, interleaved(b, x, 2), 0, 1, 3, 2), ["reshape"] * 2 + ["concatenate"],
    ),
    "columns of rows of two": (
        lambda b, x: transpose(b, interleaved(b, x, 2), 0, 3, 2, 1), ["reshape"] * 2 + ["concatenate", "transpose"],
    ),
    "transposed rows of nine": (
        lambda b, x: transpose(b, interleaved(b, x, 9), 1, 2, 0, 3),
        ["reshape"] * 9 + ["concatenate", "transpose"],
    ),
    "every other of every other": (
        lambda b, x: b.add(
            ops.Slice(b.add(ops.Slice(x, (0, 0, 1), (2, 3, 4), (1, 2, 2))), (0, 1, 0), (2, 2, 2), (2, 1, 1))
        ), ["slice"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str) -> None:
    build, wanted = CASES[name]
    assert names(rewritten(program_of([type_of(X)], build), SHAPE, [X])) == wanted


def test_slices_of_nothing_lie_inside_of_the_operand() -> None:
    """If the strides of the first slice lead beyond the operand."""

    def body(b, x):
        return b.add(ops.Slice(b.add(ops.Slice(x, (1,), (4,), (3,))), (1,), (1,), (1,)))

    x = np.arange(4, dtype=np.int32)
    assert names(rewritten(program_of([type_of(x)], body), SHAPE, [x])) == ["slice"]


@pytest.mark.parametrize(
    ("own", "padding", "wanted"), [(0.0, 0.0, []), (-0.0, 0.0, ["pad"]), (np.nan, np.nan, ["pad"])]
)
def test_splats_are_padded_by_their_own_number(own: float, padding: float, wanted: list[str]) -> None:
    def body(b):
        return b.add(ops.Pad(splat(b, own, tensor(2)), splat(b, padding, tensor()), (1,), (1,), (1,)))

    assert names(rewritten(program_of([], body), SHAPE, [])) == wanted


@pytest.mark.parametrize("numbers", [(0.0, 0.0), (0.0, -0.0)])
def test_splats_of_other_bits_are_not_joined(numbers: tuple[float, float]) -> None:
    def body(b):
        return b.add(ops.Concatenate([splat(b, number, tensor(2)) for number in numbers], 0))

    wanted = [] if np.signbit(numbers[0]) == np.signbit(numbers[1]) else ["concatenate"]
    assert names(rewritten(program_of([], body), SHAPE, [])) == wanted


def test_empty_constants_are_padded() -> None:
    def body(b):
        return b.add(ops.Pad(splat(b, 3, tensor(0)), splat(b, 3, tensor()), (1,), (2,), (0,)))

    rewritten(program_of([], body), SHAPE, [])
