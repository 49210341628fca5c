"""Requests of rows at computed places: where there are any, that nothing behind an index is read for them, and that
results stay the same."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import replace

import numpy as np
import pytest

from tests.backends.harness import program_of
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.prefetching import AHEAD, REQUESTED
from trivium.backends.cpu.program import emit_program
from trivium.backends.cpu.target import CpuTarget, host
from trivium.compiler import pipeline
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.lower import lower
from trivium.compiler.program import Program
from trivium.ir.text import parse

PREFETCH = "call void @llvm.prefetch"
EAGER = replace(host(), prefetch_bytes=0, split_cost=60.0, wake_cost=60.0, piece_cost=2.0)


def gathering(rows: int, width: int, table: int, dtype: str = "f32") -> Program:
    """Rows of a table, at given places."""
    t, i, r = f"tensor<{table}x{width}x{dtype}>", f"tensor<{rows}x1xi32>", f"tensor<{rows}x{width}x{dtype}>"
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    return lowered(f"""
        func.func @main(%t: {t}, %i: {i}) -> {r} {{
          %r = "stablehlo.gather"(%t, %i) {{dimension_numbers = #stablehlo.gather<{numbers}>,
            slice_sizes = array<i64: 1, {width}>, indices_are_sorted = false}} : ({t}, {i}) -> {r}
          return %r : {r}
        }}""")


def adding(rows: int, width: int, table: int) -> Program:
    """A table to whose rows, at given places, others are added."""
    t, i, u = f"tensor<{table}x{width}xf32>", f"tensor<{rows}x1xi32>", f"tensor<{rows}x{width}xf32>"
    numbers = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
    return lowered(f"""
        func.func @main(%t: {t}, %i: {i}, %u: {u}) -> {t} {{
          %r = "stablehlo.scatter"(%t, %i, %u) ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }}) {{scatter_dimension_numbers = #stablehlo.scatter<{numbers}, index_vector_dim = 1>,
            indices_are_sorted = false, unique_indices = false}} : ({t}, {i}, {u}) -> {t}
          return %r : {t}
        }}""")


def pooling(rows: int, width: int, table: int, bags: int) -> Program:
    """Bags, to which rows of a table, at given places, are added."""
    t, r, b = (f"tensor<{extent}x{width}xf32>" for extent in (table, rows, bags))
    i = f"tensor<{rows}x1xi32>"
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    window = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
    return lowered(f"""
        func.func @main(%t: {t}, %i: {i}, %z: {b}, %bag: {i}) -> {b} {{
          %u = "stablehlo.gather"(%t, %i) {{dimension_numbers = #stablehlo.gather<{numbers}>,
            slice_sizes = array<i64: 1, {width}>, indices_are_sorted = false}} : ({t}, {i}) -> {r}
          %r = "stablehlo.scatter"(%z, %bag, %u) ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }}) {{scatter_dimension_numbers = #stablehlo.scatter<{window}, index_vector_dim = 1>,
            indices_are_sorted = false, unique_indices = false}} : ({b}, {i}, {r}) -> {b}
          return %r : {b}
        }}""")


def lowered(text: str) -> Program:
    return lower(pipeline.optimize(parse(text), EAGER), EAGER)


def requests(program: Program, target: CpuTarget = EAGER) -> int:
    """Returns the number of lines that are requested in an iteration."""
    return str(emit_program(program, target).module).replace('"', "").count(PREFETCH)


def at_the_end(array: np.ndarray) -> tuple[mmap.mmap, int]:
    """Returns a copy of an array that ends where memory cannot be read, and its address."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    memory[size - array.nbytes : size] = array.tobytes()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None, use_errno=True)
    assert library.mprotect(ctypes.c_void_p(address + size), mmap.PAGESIZE, 0) == 0
    return memory, address + size - array.nbytes


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [2, AHEAD - 1, AHEAD, AHEAD + 1, 3 * AHEAD + 5])
@pytest.mark.parametrize("width", [16, 37, 512])
def test_nothing_behind_the_places_is_read(rows: int, width: int, threads: int) -> None:
    program, target = gathering(rows, width, 50), EAGER.with_threads(threads)
    assert requests(program, target)
    run = CpuExecutable(assemble_program(program, target))
    generator = np.random.default_rng(rows)
    table = generator.standard_normal((50, width)).astype(np.float32)
    places = generator.integers(-5, 55, (rows, 1)).astype(np.int32)
    result = np.empty((rows, width), np.float32)
    memory, address = at_the_end(places)
    run.execute_at([table.ctypes.data, address, result.ctypes.data])
    np.testing.assert_array_equal(result, table[np.clip(places[:, 0], 0, 49)])
    del memory


def test_rows_that_change_are_requested_too() -> None:
    program = adding(70, 64, 50)
    assert requests(program) == 4
    run = CpuExecutable(assemble_program(program, EAGER))
    generator = np.random.default_rng(0)
    table, updates = (generator.integers(-9, 9, shape).astype(np.float32) for shape in ((50, 64), (70, 64)))
    places = generator.integers(-5, 55, (70, 1)).astype(np.int32)
    expected = table.copy()
    within = (places[:, 0] >= 0) & (places[:, 0] < 50)
    np.add.at(expected, places[within, 0], updates[within])
    np.testing.assert_array_equal(run.execute(table, places, updates)[0], expected)


@pytest.mark.parametrize("width", [37, 64])
def test_rows_that_only_some_iterations_need_are_requested(width: int) -> None:
    """Entries of no bag need no row, but their place in the table can be read as well."""
    program = pooling(70, width, 50, 9)
    assert requests(program) == 2 * -(-width * 4 // 64)
    run = CpuExecutable(assemble_program(program, EAGER))
    generator = np.random.default_rng(0)
    table, bags = (generator.integers(-9, 9, shape).astype(np.float32) for shape in ((50, width), (9, width)))
    places, bag = (generator.integers(-5, extent, (70, 1)).astype(np.int32) for extent in (55, 14))
    result, within = bags.copy(), (bag[:, 0] >= 0) & (bag[:, 0] < 9)
    np.add.at(result, bag[within, 0], table[np.clip(places[within, 0], 0, 49)])
    got, (memory, address) = np.empty_like(result), at_the_end(places)
    run.execute_at([table.ctypes.data, address, bags.ctypes.data, bag.ctypes.data, got.ctypes.data])
    np.testing.assert_array_equal(got, result)
    del memory


def test_a_place_that_is_outside_of_an_array_is_not_read() -> None:
    """Only iterations that stay inside read it; so a later one may have no place."""
    b = KernelBuilder("guarded")
    x, table = b.input("x", "i64", (30,)), b.input("table", "f32", (50, 64))
    y = b.output("y", "f32", (40, 64))
    with b.parallel(40, 64) as (row, column):
        with b.if_(b.compare("LT", row, 30)) as inside:
            inside.yield_(b.load(table, b.load(x, row), column))
        with inside.otherwise():
            inside.yield_(b.constant(0.0, "f32"))
        b.store(y, *inside.results, row, column)
    assert not requests(program_of(b.build()))


def test_only_rows_of_large_arrays_that_are_not_long_are_requested() -> None:
    target = host()
    assert requests(gathering(100, 64, 10_000), target) == 4
    assert requests(gathering(100, 64, 10_000, "f64"), target) == 8
    assert not requests(gathering(100, 64, 1_000), target)
    assert not requests(gathering(100, REQUESTED // 4, 10_000), target)


def chained(mode: str) -> Kernel:
    """Rows at places that are read at places that are read: `mode` is whether from an argument, or from a result."""
    b = KernelBuilder("chained")
    x, table = b.input("x", "i64", (40,)), b.input("table", "f32", (50, 64))
    between = b.input("between", "i64", (40,)) if mode == "in" else b.output("between", "i64", (40,))
    y = b.output("y", "f32", (40, 64))
    with b.parallel(40, 64) as (row, column):
        place = b.load(x, row)
        b.store(y, b.load(table, b.load(between, place) if mode == "in" else place, column), row, column)
    return b.build()


def test_a_place_is_not_read_at_a_place_that_was_read() -> None:
    """It may be overwritten meanwhile: in place, a later iteration's number is not yet, or no longer, an index."""
    assert requests(program_of(chained("out")))
    assert not requests(program_of(chained("in")))


def test_scratch_memory_is_not_requested() -> None:
    b = KernelBuilder("scratch")
    x, y = b.input("x", "i64", (40,)), b.output("y", "f32", (40, 64))
    with b.parallel(40) as (row,):
        table = b.scratch("f32", (3, 64))
        with b.parallel(3, 64) as (number, column):
            b.store(table, b.convert(number, "f32"), number, column)
        with b.parallel(64) as (column,):
            b.store(y, b.load(table, b.load(x, row), column), row, column)
    program = program_of(b.build())
    assert not requests(program)
    places = np.arange(40) % 3
    (result,) = CpuExecutable(assemble_program(program, EAGER)).execute(places)
    np.testing.assert_array_equal(result, np.repeat(places[:, None], 64, axis=1))
