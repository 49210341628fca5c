"""Programs for ranges of sizes on arrays: what is in the space behind the elements is NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT
from tests.compiler.bounded import programs
from tests.compiler.bounded.test_program import Draw
from trivium.backends import ranged, specializing
from trivium.backends.ranged import RangedProgram, RangedPrograms
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.lowering import ends
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def noted(monkeypatch: pytest.MonkeyPatch) -> list[RangedProgram]:
    """The programs for ranges that are compiled from now on; what is in the space is NaN."""
    found: list[RangedProgram] = []
    make = RangedPrograms._made

    def noted(self: RangedPrograms, *given: Any) -> RangedProgram:
        found.append(make(self, *given))
        return found[-1]

    def execute(self: RangedProgram, *given: Any) -> list[np.ndarray]:
        fill_memory(self)
        return run(self, *given)

    run = RangedProgram.execute
    monkeypatch.setattr(RangedPrograms, "_made", noted)
    monkeypatch.setattr(RangedProgram, "execute", execute)
    monkeypatch.setattr(ranged, "with_space", programs.with_space)
    monkeypatch.setattr(ends, "SHORTEST", 1)
    return found


def fill_memory(program: RangedProgram) -> None:
    """Runs a program with the largest sizes on NaN, so that its temporary memory has them where shorter loops of the
    next run do not write."""
    largest = max(range(len(program.combinations)), key=lambda number: sum(program.combinations[number]))
    filled = [
        np.full(kind.static_shape, 0 if kind.dtype.kind in "iub" else np.nan, kind.dtype) for kind in program.types
    ]
    program.loaded.execute(*filled, *program.extents[largest])


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[RangedProgram]:
    """The programs for ranges, which are compiled from the first combination on."""
    monkeypatch.setattr(specializing, "COMPILED_AT_ONCE", 0)
    return noted(monkeypatch)


def loaded(module: Module) -> SpecializingExecutable:
    found = CLIENT.compile(module, CompileOptions(threads=1))
    assert isinstance(found, SpecializingExecutable)
    return found


def require(run: SpecializingExecutable, module: Module, *given: np.ndarray) -> None:
    """Checks a run against the interpreter."""
    ours, theirs = run.execute(*given), programs.as_list(evaluate(module, *given))
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_random_programs(seed: int, made: list[RangedProgram]) -> None:
    draw = Draw(seed)
    module = draw.module(3 + seed % 6)
    numbers = np.random.default_rng(seed)
    run = loaded(module)
    for sizes in programs.combinations(n=(2, 5, 3), m=(4, 3)):
        shapes = [programs.shape_at(shape, sizes) for shape in draw.shapes]
        require(run, module, *(programs.drawn(shape, np.dtype(np.float32), numbers) for shape in shapes))
    assert made


BATCHES = """func.func @main(%x: tensor<?x4xf32>, %rows: tensor<?xi32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.gather"(%x, %rows) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<?x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<4xf32>
}"""
TOTALS = """func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<?x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<4xf32>
}"""
COUNTED = """func.func @main(%x: tensor<f32>, %shape: tensor<2xi32>, %turned: tensor<i1>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi32>) -> tensor<?x?xf32>
  %2 = stablehlo.add %0, %1 : tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}"""


def test_sizes_that_have_been_the_same_vary_together(made: list[RangedProgram]) -> None:
    module = trivium.parse(BATCHES)
    run = loaded(module)
    random = np.random.default_rng(0)

    def call(rows: int, taken: int) -> None:
        x = random.standard_normal((rows, 4)).astype(np.float32)
        require(run, module, x, random.integers(0, rows, taken).astype(np.int32))

    call(9, 9)
    call(12, 12)
    call(16, 16)
    assert [len(program.combinations) for program in made] == [8]
    assert run.compiled_ranges() == ["sizes from 9 to 16"]
    call(16, 5)
    assert run.compiled_ranges() == ["sizes from 9 to 16", "sizes from 9 to 16, 5 to 8"]
    call(12, 12)
    call(15, 6)
    assert len(made) == 2
    assert run.compiled_shapes() == [((9, 4), (9,))], "nothing has varied before the second call"


def test_integers_that_extents_follow_from(made: list[RangedProgram]) -> None:
    module = trivium.parse(COUNTED)
    run = loaded(module)
    for rows, columns in ((3, 9), (4, 11), (2, 16), (3, 10), (2, 12)):
        require(run, module, np.float32(rows), np.array([rows, columns], np.int32), np.bool_(rows % 2))
    assert run.compiled_ranges() == ["sizes from 2 to 4, 9 to 16"]


def test_empty_arrays_and_single_rows_have_programs_of_their_own(made: list[RangedProgram]) -> None:
    module = trivium.parse(TOTALS)
    run = loaded(module)
    for rows in (3, 0, 1, 5, 1, 0, 8):
        require(run, module, np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4))
    assert run.compiled_shapes() == [((3, 4),), ((1, 4),), ((0, 4),)]
    assert run.compiled_ranges() == ["sizes from 2 to 8"]


def test_results_belong_to_the_caller(made: list[RangedProgram]) -> None:
    module = trivium.parse(COUNTED)
    run = loaded(module)
    one, two, three = (run.execute(np.float32(0), np.array([n, 9 - n], np.int32), np.True_)[0] for n in (3, 4, 5))
    for result, rows in ((one, 3), (two, 4), (three, 5)):
        assert result.flags.c_contiguous
        assert result.flags.writeable
        np.testing.assert_array_equal(result, np.tile(np.arange(9 - rows, dtype=np.float32), (rows, 1)))


HALVES = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %half = stablehlo.divide %n, %two : tensor<i32>
  %a = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
  %b = stablehlo.reshape %two : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %pairs = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = stablehlo.reduce(%pairs init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<?x2xf32>, tensor<f32>) -> tensor<?xf32>
  return %sums : tensor<?xf32>
}"""


def test_sizes_for_which_a_program_is_not_valid_are_errors(made: list[RangedProgram]) -> None:
    module = trivium.parse(HALVES)
    run = loaded(module)
    for size in (10, 12, 16, 11, 14):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        if size % 2:
            with pytest.raises(trivium.Error, match="11"):
                run.execute(x)
        else:
            require(run, module, x)
    (program,) = made
    assert program.combinations == [(10,), (12,), (14,), (16,)]


UNBOUNDED = """func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}"""


def test_ops_that_know_one_size_are_compiled_for_each(
    made: list[RangedProgram], caplog: pytest.LogCaptureFixture
) -> None:
    module = trivium.parse(UNBOUNDED)
    run = loaded(module)
    with caplog.at_level("INFO", "trivium.executable"):
        for size in (3, 5, 4, 5):
            require(run, module, np.eye(size, dtype=np.float32))
    assert not made
    assert run.compiled_ranges() == []
    assert len(run.compiled_shapes()) == 3
    told = [record.getMessage() for record in caplog.records if "ranges" in record.getMessage()]
    assert told == [
        "main has no programs for ranges of sizes: stablehlo.cholesky: it cannot compute with several sizes at once"
    ]


def test_buffers_and_specializations_have_no_space(made: list[RangedProgram]) -> None:
    module = trivium.parse(BATCHES)
    run = loaded(module)
    arrays = [(np.ones((n, 4), np.float32), np.arange(n, dtype=np.int32)) for n in (3, 4, 5)]
    for x, rows in arrays:
        require(run, module, x, rows)
    (program,) = made
    for x, rows in arrays:
        results = run.execute_buffers([CLIENT.buffer_from_host(x), CLIENT.buffer_from_host(rows)])
        np.testing.assert_array_equal(results[0].to_numpy(), x)
        assert run.specialize(x, rows) is not program.loaded
    assert len(run.compiled_shapes()) == 3


def test_reports_are_those_of_the_last_call(made: list[RangedProgram]) -> None:
    run = trivium.compile(trivium.parse(BATCHES), threads=1)
    for rows in (3, 5, 7):
        run(np.ones((rows, 4), np.float32), np.arange(rows, dtype=np.int32))
    (program,) = made
    assert run.cost_analysis() == program.loaded.cost_analysis()
    assert run.stage("kernels") == program.loaded.stage("kernels")
    told = run.explain()
    assert "It was compiled for the shapes 3x4, 3." in told
    assert "It was also compiled for sizes from 2 to 8." in told


def test_several_callers_compile_once(made: list[RangedProgram]) -> None:
    import threading

    module = trivium.parse(BATCHES)
    run = loaded(module)
    require(run, module, np.ones((3, 4), np.float32), np.arange(3, dtype=np.int32))
    results: dict[int, Sequence[np.ndarray]] = {}

    def call(rows: int) -> None:
        results[rows] = run.execute(np.full((rows, 4), rows, np.float32), np.arange(rows, dtype=np.int32))

    callers: list[threading.Thread] = [threading.Thread(target=call, args=(rows,)) for rows in range(4, 9)]
    steps: Sequence[Callable[[threading.Thread], None]] = (threading.Thread.start, threading.Thread.join)
    for step in steps:
        for caller in callers:
            step(caller)
    for rows, (taken, total) in results.items():
        np.testing.assert_array_equal(taken, np.full((rows, 4), rows))
        np.testing.assert_array_equal(total, np.full(4, rows * rows))
    assert len(results) == 5
    assert len(made) == 1
