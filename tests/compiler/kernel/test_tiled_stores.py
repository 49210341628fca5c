"""Kernels that write across the rows that they read compute the same in tiles, and others stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.backends.harness import load
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.target import level
from trivium.compiler.kernel import Kernel, KernelBuilder, Register, expression
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.structure import If, Loop, Scratch, walk
from trivium.compiler.kernel.tiled_stores import tiled_stores

KINDS = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64}


def form(kernel: Kernel, vector_bytes: int = 64) -> Kernel | None:
    return tiled_stores(kernel, Analysis(kernel), vector_bytes)


def tile(kernel: Kernel, vector_bytes: int = 64) -> tuple[int, ...]:
    """Returns the shape of the first tile of a kernel's form: the rows that are computed, and their length."""
    tiled = form(kernel, vector_bytes)
    assert tiled is not None
    return next(i.buffer.shape for i in walk(tiled.body) if isinstance(i, Scratch))


def results(kernel: Kernel, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Returns what the interpreter computes."""
    outputs = [p for p in kernel.params if p.mode == "out"]
    memory = [garbage(p.size, np.dtype(KINDS[p.dtype])) for p in outputs]
    run(kernel, [*(array.reshape(-1) for array in inputs), *memory], False)
    return [array.reshape(p.shape) for array, p in zip(memory, outputs, strict=True)]


def check(kernel: Kernel) -> Kernel:
    """Returns a kernel's form, which computes the same, interpreted and as machine code, on one and on two threads."""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 9, p.shape).astype(KINDS[p.dtype]) for p in kernel.params if p.mode == "in"]
    tiled = form(kernel)
    assert tiled is not None
    assert tiled.params == kernel.params
    expected = results(kernel, inputs)
    compiled = [load(each, threads=threads).execute(*inputs) for each in (kernel, tiled) for threads in (1, 2)]
    for got in (results(tiled, inputs), *compiled):
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    return tiled


def turned(shape: tuple[int, ...], dtype: str = "f32", reads: int = 3) -> Kernel:
    """Adds several arrays, and transposes the last two dimensions."""
    b = KernelBuilder("turned")
    *batch, rows, columns = shape
    arrays = [b.input(f"x{n}", dtype, shape) for n in range(reads)]
    y = b.output("y", dtype, (*batch, columns, rows))
    with b.parallel(*batch, columns, rows) as (*outer, j, i):
        first, *others = (b.load(x, *outer, i, j) for x in arrays)
        for other in others:
            first = b.add(first, other)
        b.store(y, first, *outer, j, i)
    return b.build()


def body(emit: Callable[[KernelBuilder, Register, Register], None], *extents: int) -> Kernel:
    """Returns a kernel of one loop, to which `emit` adds the body and the buffers."""
    b = KernelBuilder("body")
    with b.parallel(*(extents or (48, 80))) as (j, i):
        emit(b, j, i)
    return b.build()


@pytest.mark.parametrize("shape", [(16, 16), (64, 128), (40, 33), (197, 24), (3, 20, 24), (2, 2, 9, 130), (49, 96)])
@pytest.mark.parametrize("dtype", KINDS)
def test_tiles_compute_the_same(shape: tuple[int, ...], dtype: str) -> None:
    check(turned(shape, dtype))


def test_sides_divide_the_extents_and_fill_vectors() -> None:
    assert tile(turned((1024, 128))) == (64, 64)
    assert tile(turned((1024, 128), "f64")) == (64, 32)
    assert tile(turned((49, 512))) == (49, 64)
    assert form(turned((257, 512))) is None  # a prime
    assert form(turned((6, 512))) is None  # short
    assert form(turned((512, 6))) is None


def test_decisions_are_inside_of_the_tiles() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, z = b.input("x", "f32", (80, 48)), b.input("z", "f32", (80,))
        y = b.output("y", "f32", (48, 80))
        value = b.load(x, i, j)
        with b.if_(b.compare("LT", b.position(expression([(i, 1)]) % 32), 31)) as branch:
            branch.yield_(b.load(x, (expression([(i, 1)], 1)) % 80, j))
        with branch.otherwise():
            branch.yield_(b.load(z, i))
        b.store(y, b.multiply(b.add(value, branch.results[0]), b.convert(b.add(j, i), "f32")), j, i)

    tiled = check(body(emit))
    assert sum(isinstance(i, If) for i in walk(tiled.body)) == 1


def test_reductions_are_inside_of_the_tiles() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, y = b.input("x", "f32", (80, 30, 48)), b.output("y", "f32", (48, 80))
        with b.reduction(30, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(x, i, total.index, j))
        b.store(y, total.result, j, i)

    check(body(emit))


def test_one_tile_whose_loops_threads_share() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, y = b.input("x", "f32", (64, 300, 64)), b.output("y", "f32", (64, 64))
        with b.reduction(300, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(x, i, total.index, j))
        b.store(y, total.result, j, i)

    kernel = body(emit, 64, 64)
    assert tile(kernel) == (64, 64)
    check(kernel)


def test_parts_of_complex_numbers() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, y = b.input("x", "f32", (80, 48, 2)), b.output("y", "f32", (48, 80, 2))
        real, imaginary = (b.load(x, i, j, part) for part in (0, 1))
        b.store(y, b.add(real, imaginary), j, i, 0)
        b.store(y, b.subtract(real, imaginary), j, i, 1)

    tiled = check(body(emit))
    assert sum(isinstance(i, Loop) for i in walk(tiled.body)) == 3  # both parts are copied together


def test_stores_along_the_rows_that_are_read_stay_where_they_are() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, v = b.input("x", "f32", (80, 48)), b.input("v", "f32", (80, 48))
        y, z, w = b.output("y", "f32", (48, 80)), b.output("z", "f32", (80, 48)), b.output("w", "bf16", (48, 80))
        total = b.add(b.load(x, i, j), b.load(v, i, j))
        b.store(y, total, j, i)
        b.store(z, b.apply("negate", total), i, j)
        b.store(w, b.convert(total, "bf16"), j, i)

    tiled = check(body(emit))
    assert sum(isinstance(i, Scratch) for i in walk(tiled.body)) == 2


def test_a_part_of_a_result_and_numbers_of_places() -> None:
    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x, y = b.input("x", "i64", (80, 50)), b.output("y", "i64", (48, 80), strides=(100, 1), offset=3)
        b.store(y, b.add(b.add(b.load(x, i, expression([(j, 1)], 2)), j), b.multiply(i, 100)), j, i)

    kernel = body(emit)
    x, tiled = np.arange(4000), form(kernel)
    assert tiled is not None
    expected, got = np.zeros(4800, np.int64), np.zeros(4800, np.int64)
    run(kernel, [x, expected], False)
    run(tiled, [x, got], False)
    np.testing.assert_array_equal(got, expected)
    assert np.count_nonzero(expected) > 3800


def stays(name: str) -> Kernel:
    """Returns a kernel that has no tiles."""
    if name == "contiguous":
        b = KernelBuilder(name)
        x, y = b.input("x", "f32", (64, 64)), b.output("y", "f32", (64, 64))
        with b.parallel(64, 64) as (i, j):
            b.store(y, b.load(x, i, j), i, j)
        return b.build()

    def emit(b: KernelBuilder, j: Register, i: Register) -> None:
        x = b.input("x", "f32", (80, 48))
        y = (
            b.inout("y", "f32", (48, 80))
            if name in ("reads the result", "in place")
            else b.output("y", "f32", (48, 80))
        )
        value = b.load(x, i, j)
        if name == "reads the result":
            value = b.add(value, b.load(y, j, i))
        if name == "a place that is read":
            z = b.input("z", "i64", (80, 48))
            b.store(y, value, b.clamp(0, b.load(z, i, j), 47), i)
        elif name == "decided":
            with b.if_(b.compare("LT", value, 0.0)):
                b.store(y, value, j, i)
        elif name == "twice":
            b.store(y, value, j, i)
            with b.if_(b.compare("LT", value, 0.0)):
                b.store(y, 0.0, j, i)
        else:
            b.store(y, value, j, i)

    return body(emit)


@pytest.mark.parametrize(
    "name", ["contiguous", "reads the result", "in place", "a place that is read", "decided", "twice"]
)
def test_what_stays_as_it_is(name: str) -> None:
    assert form(stays(name)) is None


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4"])
def test_tiles_are_chosen_where_they_cost_less(name: str) -> None:
    target = level(name)
    for kernel, tiled in ((turned((1024, 128)), True), (turned((1024, 128), reads=1), False)):
        assert (prepared(kernel, target)[0] is not kernel) == tiled
    _, _, schedule = prepared(turned((1024, 128)), target)
    outer, computed, copied = schedule.loops.values()
    assert outer.extents == (2, 16)
    assert computed.vector == 1
    assert copied.turned is not None
