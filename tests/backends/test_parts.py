"""Executables in parts: what runs, what is compiled again, and what they refuse."""

import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT
from tests.compiler.test_parts import COUNTED, numbers
from trivium.backends.parts import PartedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import Error, ExecutionError


def test_parts_run_one_after_the_other() -> None:
    loaded = CLIENT.compile(trivium.parse(COUNTED), CompileOptions(threads=1))
    assert isinstance(loaded, PartedExecutable)
    assert isinstance(loaded.rest, SpecializingExecutable)
    for seed in (0, 1, 0):
        x = numbers(seed) + seed
        places, z = loaded.execute(x)
        assert places.tolist() == list(range((x > 0).sum()))
        np.testing.assert_array_equal(z, x * 2 + 2)
        buffers = loaded.execute_buffers([CLIENT.buffer_from_host(x)])
        np.testing.assert_array_equal(buffers[0].to_numpy(), places)
    assert len(loaded.rest.compiled_shapes()) == 2
    assert loaded.specialize(numbers(0)) is loaded
    assert loaded.cost_analysis()["flops"] > 70
    assert loaded.memory_analysis().argument_size_in_bytes >= 280
    assert "func.func" in loaded.stage("graph")


def test_what_parts_cannot_do() -> None:
    run = trivium.compile(trivium.parse(COUNTED))
    with pytest.raises(Error, match="cannot be one program that is written: its extents depend on what it computes"):
        run.loaded.whole()
    with pytest.raises(Error, match="cannot be one program"):
        run.program  # noqa: B018
    with pytest.raises(ExecutionError, match="expected arrays and not addresses"):
        run.loaded.execute_at([])


def test_parts_are_explained() -> None:
    run = trivium.compile(trivium.parse(COUNTED))
    run(numbers(0))
    assert "main runs in 2 parts: the extents of the second one depend on what the first one computes" in run.explain()


def test_extents_of_extents() -> None:
    """The second part is itself divided."""
    text = """func.func @main(%x: tensor<70xi64>) -> tensor<?xi64> {
      %first = stablehlo.slice %x [0:1] : (tensor<70xi64>) -> tensor<1xi64>
      %0 = stablehlo.dynamic_iota %first, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
      %none = stablehlo.constant dense<0> : tensor<i64>
      %sum = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0]
        : (tensor<?xi64>, tensor<i64>) -> tensor<i64>
      %second = stablehlo.slice %x [1:2] : (tensor<70xi64>) -> tensor<1xi64>
      %n = stablehlo.reshape %sum : (tensor<i64>) -> tensor<1xi64>
      %size = stablehlo.add %n, %second : tensor<1xi64>
      %1 = stablehlo.dynamic_iota %size, dim = 0 : (tensor<1xi64>) -> tensor<?xi64>
      return %1 : tensor<?xi64>
    }"""
    run = trivium.compile(trivium.parse(text))
    for count in (4, 1, 0):
        x = np.full(70, count)
        assert run(x)[0].tolist() == list(range(sum(range(count)) + count))
