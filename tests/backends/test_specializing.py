"""Executables of dynamic shapes: what is compiled at which time, what is kept, and what they refuse. Here, each
combination of shapes has a program of its own; for those of ranges, see `test_ranged.py`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT
from trivium.backends import specializing
from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler.driver import CompileOptions, DynamicModule
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.interpreter import evaluate

SUMS = """func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %y : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}"""
FILLED = """func.func @main(%x: tensor<f32>, %shape: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}"""


@pytest.fixture(autouse=True)
def without_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specializing, "COMPILED_AT_ONCE", 100)


class Recorded:
    """A program, and what was compiled for it: shapes, and values of arguments."""

    def __init__(self, text: str, around: Callable[[], None] = lambda: None) -> None:
        self.asked: list[tuple[Sequence[object], dict[int, list]]] = []
        original = CLIENT.compile(trivium.parse(text), CompileOptions(threads=1))
        assert isinstance(original, SpecializingExecutable)

        def compile_for(shapes: Sequence, values: Mapping[int, np.ndarray]) -> LoadedExecutable:
            self.asked.append((shapes, {index: value.tolist() for index, value in values.items()}))
            around()
            return original._compile(shapes, values)

        compile_static = original._compile_static
        dynamic = DynamicModule(original.graph, original._shape_arguments, compile_for, compile_static)
        self.run = SpecializingExecutable(dynamic, CLIENT.devices[0])


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)


def test_each_combination_of_shapes_is_compiled_once() -> None:
    recorded = Recorded(SUMS)
    assert recorded.asked == []
    for count in (3, 5, 3, 0, 5, 3):
        x, y = rows(count), rows(count, 1)
        np.testing.assert_array_equal(recorded.run.execute(x, y)[0], x + y)
    assert [shapes for shapes, _ in recorded.asked] == [((n, 4), (n, 4)) for n in (3, 5, 0)]


def test_values_that_extents_are_computed_from_count_and_others_do_not() -> None:
    recorded = Recorded(FILLED)
    for x, shape in ((1, [2, 3]), (2, [2, 3]), (3, [3, 2]), (4, [2, 3])):
        (result,) = recorded.run.execute(np.float32(x), np.array(shape, np.int32))
        np.testing.assert_array_equal(result, np.full(shape, x))
    assert [values for _, values in recorded.asked] == [{1: [2, 3]}, {1: [3, 2]}]


def test_arguments_that_change_in_place_are_looked_at_anew() -> None:
    recorded = Recorded(FILLED)
    shape = np.array([2, 3], np.int32)
    assert recorded.run.execute(np.float32(1), shape)[0].shape == (2, 3)
    shape[:] = [4, 1]
    assert recorded.run.execute(np.float32(1), shape)[0].shape == (4, 1)
    assert [values for _, values in recorded.asked] == [{1: [2, 3]}, {1: [4, 1]}]


def test_the_least_recently_used_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpecializingExecutable, "KEPT", 2)
    recorded = Recorded(SUMS)
    for count in (1, 2, 1, 3, 1, 2):
        recorded.run.execute(rows(count), rows(count))
    assert [shapes[0] for shapes, _ in recorded.asked] == [(1, 4), (2, 4), (3, 4), (2, 4)]
    assert len(recorded.run._compiled) == 2


def test_threads_that_come_at_once_compile_once() -> None:
    """Calls of compiled programs continue while another one is being compiled."""
    begun, going_on = threading.Event(), threading.Event()

    def around() -> None:
        if len(recorded.asked) == 2:
            begun.set()
            assert going_on.wait(30)

    recorded = Recorded(SUMS, around)
    recorded.run.execute(rows(1), rows(1))
    results: list[np.ndarray] = []

    def call() -> None:
        results.append(recorded.run.execute(rows(7), rows(7))[0])

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    assert begun.wait(30)
    np.testing.assert_array_equal(recorded.run.execute(rows(1), rows(1))[0], 2 * rows(1))
    assert results == []
    going_on.set()
    for caller in callers:
        caller.join()
    assert len(recorded.asked) == 2
    for result in results:
        np.testing.assert_array_equal(result, 2 * rows(7))
    assert len(results) == 4


def test_what_cannot_be_compiled_is_tried_again() -> None:
    def refuse() -> None:
        if len(recorded.asked) == 1:
            raise CompileError("not today")

    recorded = Recorded(SUMS, refuse)
    with pytest.raises(CompileError, match="not today"):
        recorded.run.execute(rows(2), rows(2))
    np.testing.assert_array_equal(recorded.run.execute(rows(2), rows(2))[0], 2 * rows(2))
    assert len(recorded.asked) == 2


def test_the_log_tells_of_each_compilation(caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(FILLED)
    with caplog.at_level(logging.INFO, "trivium.executable"):
        for _ in range(2):
            recorded.run.execute(np.float32(1), np.array([2, 3], np.int32))
    assert [record.getMessage() for record in caplog.records] == [
        "compiling main for shapes ((), (2,)), and the values {1: [2, 3]} of arguments"
    ]


def test_shapes_that_do_not_fit_each_other_are_errors_of_the_compilation() -> None:
    recorded = Recorded(SUMS)
    with pytest.raises(Error):
        recorded.run.execute(rows(2), rows(3))
    with pytest.raises(Error):
        evaluate(trivium.parse(SUMS), rows(2), rows(3))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((rows(2),), "main was given 1 arguments, expected 2"),
        ((rows(2), rows(2), rows(2)), "main was given 3 arguments, expected 2"),
        ((rows(2), rows(2)[:, :3]), r"argument 1 of main has shape \(2, 3\), expected \(None, 4\)"),
        ((rows(2), rows(2).astype(np.float64)), "argument 1 of main has dtype float64, expected float32"),
        ((rows(2)[0], rows(2)), r"argument 0 of main has shape \(4,\)"),
    ],
)
def test_wrong_arguments_compile_nothing(arguments: tuple[np.ndarray, ...], reason: str) -> None:
    recorded = Recorded(SUMS)
    with pytest.raises(ExecutionError, match=reason):
        recorded.run.execute(*arguments)
    assert recorded.asked == []


def test_what_needs_shapes_says_so() -> None:
    run = Recorded(SUMS).run
    with pytest.raises(ExecutionError, match="main has dynamic shapes, expected `specialize` before it runs on"):
        run.execute_at([0, 0, 0])
    with pytest.raises(Error, match="main has dynamic shapes, expected `specialize` before it is written"):
        run.whole()
    for ask in (lambda: run.program, lambda: run.stage("llvm"), run.cost_analysis, run.memory_analysis):
        with pytest.raises(Error, match="main has dynamic shapes and is compiled when it is called; call it to see"):
            ask()


def test_reports_are_those_of_the_last_call() -> None:
    run = Recorded(SUMS).run
    for count in (10, 1000, 10):
        run.execute(rows(count), rows(count))
        assert run.memory_analysis().output_size_in_bytes == 16 * count
        assert run.cost_analysis()["flops"] == 4 * count
        assert run.stage("graph") == run.specialize(rows(count), rows(count)).stage("graph")


def test_buffers_and_specializations() -> None:
    run = Recorded(SUMS).run
    x, y = rows(6), rows(6, 1)
    (result,) = run.execute_buffers([CLIENT.buffer_from_host(x), CLIENT.buffer_from_host(y)])
    np.testing.assert_array_equal(result.to_numpy(), x + y)
    static = run.specialize(x, y)
    assert static is run.specialize(y, x)
    assert static.specialize(x, y) is static
    with pytest.raises(ExecutionError, match=r"has shape \(5, 4\)"):
        static.execute(rows(5), rows(5))
