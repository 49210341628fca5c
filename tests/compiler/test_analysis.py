"""The costs of programs, compared with counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.targets import TARGET
from trivium.compiler.analysis import Cost, kernel_cost, program_cost
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Function, Module
from trivium.ir.types import tensor


def module_of(types, body) -> Module:
    return Module.build(functions=[Function.build("main", types, body)])


def cost_of(types, body) -> Cost:
    return program_cost(lower(optimize(module_of(types, body)), TARGET))


def test_an_elementwise_kernel() -> None:
    cost = cost_of([tensor(8, 4)] * 2, lambda b, x, y: b.add(ops.Tanh(b.add(ops.Multiply(b.add(ops.Add(x, y)), y)))))
    assert cost == Cost(flops=64, transcendentals=32, nbytes=3 * 32 * 4)


def test_index_arithmetic_is_not_counted() -> None:
    cost = cost_of([tensor(6, 4)], lambda b, x: b.add(ops.Negate(b.add(ops.Reshape(x, result=tensor(3, 8))))))
    assert cost == Cost(flops=24, nbytes=2 * 24 * 4)


def test_a_product_counts_two_operations_for_each_term() -> None:
    dimensions = ops.DotDimensionNumbers((), (), (1,), (0,))
    cost = cost_of([tensor(5, 7), tensor(7, 3)], lambda b, x, y: b.add(ops.DotGeneral(x, y, dimensions)))
    assert cost == Cost(flops=2 * 5 * 7 * 3, nbytes=4 * (35 + 21 + 15))


def test_a_reduction_counts_its_combiner() -> None:
    def body(b, x):
        zero = b.add(ops.Constant(np.float32(0)))
        add = region([tensor()] * 2, lambda inner, *pair: inner.add(ops.Add(*pair)))
        return b.add(ops.Reduce([x], [zero], dimensions=(1,), body=add))

    assert cost_of([tensor(10, 20)], body).flops == 200


def test_branches_count_as_the_greater_one_and_loops_by_their_extents() -> None:
    b = KernelBuilder("branches")
    x, y = b.input("x", "f32", (10,)), b.output("y", "f32", (10,))
    with b.parallel(10) as (i,):
        value = b.load(x, i)
        with b.if_(b.compare("GT", value, 0.0)) as branch:
            branch.yield_(b.apply("exponential", value))
        with branch.otherwise():
            branch.yield_(b.add(b.add(value, 1.0), value))
        b.store(y, branch.results[0], i)
    assert kernel_cost(b.build()) == Cost(flops=10 * 3)


def test_an_executable_reports_its_cost_and_memory() -> None:
    weights = np.ones((16, 8), np.float32)
    dimensions = ops.DotDimensionNumbers((), (), (1,), (0,))

    def body(b, x):
        return b.add(ops.Tanh(b.add(ops.DotGeneral(x, b.add(ops.Constant(weights)), dimensions))))

    run = trivium.compile(module_of([tensor(4, 16)], body), threads=1)
    assert run.cost_analysis() == {
        "flops": 2 * 4 * 16 * 8, "transcendentals": 32, "bytes accessed": 4 * (64 + 128 + 32)
    }  # fmt: skip
    memory = run.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 128)
    assert memory.constant_size_in_bytes >= weights.nbytes
    assert memory.generated_code_size_in_bytes > 100
    assert (memory.temp_size_in_bytes, memory.alias_size_in_bytes) == (0, 0)


def test_a_program_with_dynamic_shapes_reports_the_cost_of_its_last_call() -> None:
    run = trivium.compile(module_of([tensor(None)], lambda b, x: b.add(ops.Negate(x))))
    with pytest.raises(trivium.Error, match="call it to see what it costs"):
        run.cost_analysis()
    run(np.ones(12, np.float32))
    assert run.cost_analysis()["flops"] == 12
