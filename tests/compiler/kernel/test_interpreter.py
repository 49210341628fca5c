"""The meaning of kernels: loops, masks, scratch and scalars on NumPy arrays, and the guarantees that are checked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.kernel.kernels import matmul
from trivium.compiler.kernel import Buffer, Kernel, KernelBuilder
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.ir.errors import CompileError


def result(kernel: Kernel, *inputs: np.ndarray, marks: bool = False) -> np.ndarray:
    """Returns the last parameter's contents after a run whose other parameters are `inputs`."""
    output = kernel.params[-1]
    dtype = inputs[0].dtype if inputs and output.dtype == "f32" else np.dtype(np.float32)
    memory = garbage(output.size, dtype)
    run(kernel, [*(array.reshape(-1) for array in inputs), memory], marks)
    return memory.reshape(output.shape)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def test_a_row_sum() -> None:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (5, 7)), b.output("y", "f32", (5,))
    with b.parallel(5) as (i,):
        with b.reduction(7, inits=[b.constant(1.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, loop.index))
        b.store(y, loop.result, i)
    data = some(5, 7)
    np.testing.assert_allclose(result(b.build(), data), 1 + data.sum(1), rtol=1e-6)


def test_a_reduction_over_nothing_gives_its_init() -> None:
    b = KernelBuilder("nothing")
    x, y = b.input("x", "f32", (3, 0)), b.output("y", "f32", (3,))
    with b.parallel(3) as (i,):
        with b.reduction(0, inits=[b.constant(2.0, "f32")], combiner="maximum") as loop:
            loop.yield_(b.load(x, i, loop.index))
        b.store(y, loop.result, i)
    np.testing.assert_array_equal(result(b.build(), np.zeros((3, 0), np.float32)), [2, 2, 2])


def test_a_reduction_by_a_block() -> None:
    """Computes the largest element and its index."""
    b = KernelBuilder("argmax")
    x, y = b.input("x", "f32", (4, 9)), b.output("y", "f32", (4,))
    with b.block("f32", "i64", "f32", "i64") as combiner:
        best, place, other, at = combiner.parameters
        takes = b.compare("GT", other, best)
        combiner.yields = [b.select(takes, other, best), b.select(takes, at, place)]
    with b.parallel(4) as (i,):
        inits = [b.constant(-np.inf, "f32"), b.index(0)]
        with b.reduction(9, inits=inits, combiner=combiner) as loop:
            loop.yield_(b.load(x, i, loop.index), loop.index)
        b.store(y, b.convert(loop.results[1], "f32"), i)
    data = some(4, 9)
    np.testing.assert_array_equal(result(b.build(), data), data.argmax(1))


@pytest.mark.parametrize("kind", ["sequential", "reduction"])
def test_extents_may_differ_between_iterations(kind: str) -> None:
    """Row i counts i elements."""
    b = KernelBuilder("triangle")
    y = b.output("y", "f32", (6,))
    with b.parallel(6) as (i,):
        zero = b.constant(0.0, "f32")
        if kind == "sequential":
            with b.sequential(i, inits=[zero]) as loop:
                loop.yield_(b.add(loop.carried[0], 1.0))
        else:
            with b.reduction(i, inits=[zero], combiner="add") as loop:
                loop.yield_(b.constant(1.0, "f32"))
        b.store(y, loop.result, i)
    np.testing.assert_array_equal(result(b.build()), np.arange(6))


def test_branches_and_whiles_run_where_they_are_taken() -> None:
    """Collatz: counts the steps that each number takes to reach 1; the branch not taken would read out of bounds."""
    b = KernelBuilder("collatz")
    x, y = b.input("x", "f32", (3,)), b.output("y", "f32", (9,))
    with b.parallel(9) as (i,):
        with b.while_(b.add(i, 1), b.index(0)) as loop:
            number, steps = loop.carried
            loop.condition(b.compare("GT", number, 1))
            odd = b.compare("EQ", b.remainder(number, 2), 1)
            following = b.select(odd, b.add(b.multiply(number, 3), 1), b.divide(number, 2))
            loop.yield_(following, b.add(steps, 1))
        with b.if_(b.compare("LT", i, 3)) as branch:
            branch.yield_(b.load(x, i))
        with branch.otherwise():
            branch.yield_(b.constant(0.0, "f32"))
        b.store(y, b.add(b.convert(loop.results[1], "f32"), branch.results[0]), i)
    steps = [0, 1, 7, 2, 5, 8, 16, 3, 19]
    np.testing.assert_array_equal(result(b.build(), np.full(3, 100, np.float32)), np.add(steps, [100] * 3 + [0] * 6))


def test_each_iteration_has_its_own_scratch() -> None:
    b = KernelBuilder("reversed")
    x, y = b.input("x", "f32", (3, 4)), b.output("y", "f32", (3, 4))
    with b.parallel(3) as (i,):
        row = b.scratch("f32", (4,))
        with b.parallel(4) as (j,):
            b.store(row, b.load(x, i, j), j)
        with b.parallel(4) as (j,):
            b.store(y, b.load(row, b.subtract(3, j)), i, j)
    data = some(3, 4)
    np.testing.assert_array_equal(result(b.build(), data), data[:, ::-1])


def test_views_have_their_strides() -> None:
    b = KernelBuilder("column")
    x, y = b.input("x", "f32", (3,), strides=(4,), offset=1), b.output("y", "f32", (3,))
    with b.parallel(3) as (i,):
        b.store(y, b.load(x, i), i)
    data = some(3, 4)
    np.testing.assert_array_equal(result(b.build(), data), data[:, 1])


def test_indices_out_of_bounds_are_reported() -> None:
    b = KernelBuilder("beyond")
    x, y = b.input("x", "f32", (3,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i), i)
    with pytest.raises(CompileError, match=r"access to x\[3\]: index 3 is out of bounds") as error:
        result(b.build(), some(3))
    assert "interpreting kernel beyond" in str(error.value)


def test_iterations_that_write_the_same_element_are_reported() -> None:
    b = KernelBuilder("race")
    x, y = b.input("x", "f32", (4,)), b.output("y", "f32", (2,))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i), b.remainder(i, 2))
    with pytest.raises(CompileError, match="several iterations of a parallel loop write one element"):
        result(b.build(), some(4))


def test_fused_products_are_rounded_once() -> None:
    b = KernelBuilder("fma")
    x, y = b.input("x", "f64", ()), b.output("y", "f64", ())
    value = b.load(x)
    b.store(y, b.apply("fma", value, value, b.apply("negate", b.multiply(value, value))))
    kernel, number = b.build(), np.array([1 + 2.0**-30])
    memory = np.zeros(1)
    run(kernel, [number, memory])
    assert memory[0] == 2.0**-60  # the rounding error of the product


def test_a_mark_means_what_its_nest_does() -> None:
    kernel = matmul()
    a, w = some(4, 6), some(6, 5)
    for marks in (False, True):
        np.testing.assert_allclose(result(kernel, a, w, marks=marks), a @ w, rtol=1e-5, atol=1e-6)


def test_memory_starts_as_garbage() -> None:
    b = KernelBuilder("unwritten")
    y = b.output("y", "f32", (2,))
    scratch = b.scratch("f32", (2,))
    b.store(y, b.load(scratch, 0), 0)
    assert result(b.build())[0] != 0
    assert isinstance(y, Buffer)


def histogram(combiner: str | None) -> Kernel:
    """Combines x[i] into y[at[i]], by a name or by a block that takes the later one."""
    b = KernelBuilder("update")
    x, at, y = b.input("x", "f32", (12,)), b.input("at", "i64", (12,)), b.inout("y", "f32", (3,))
    with b.parallel(12) as (i,):
        place = b.load(at, i)
        if combiner is None:
            with b.block("f32", "f32") as block:
                block.yields = [block.parameters[1]]
            b.update([(y, (place,))], [b.load(x, i)], block)
        else:
            b.update([(y, (place,))], [b.load(x, i)], combiner)
    return b.build()


def test_updates_of_one_element_follow_the_order_of_the_iterations() -> None:
    data, at = some(12), np.array([0, 2, 0, 0, 2, 1, 0, 2, 2, 1, 0, 0])
    for combiner, expected in (
        ("add", [np.float32(1) + data[at == n].sum() for n in range(3)]),
        (None, [data[at == n][-1] for n in range(3)]),
    ):
        memory = np.ones(3, np.float32)
        run(histogram(combiner), [data, at, memory])
        np.testing.assert_allclose(memory, expected, rtol=1e-5)


def test_iterations_share_all_targets_of_an_update_or_none() -> None:
    b = KernelBuilder("crossed")
    y, z = b.inout("y", "f32", (4,)), b.inout("z", "f32", (4,))
    with b.parallel(4) as (i,):
        with b.block(*["f32"] * 4) as swap:
            swap.yields = swap.parameters[2:]
        one = b.constant(1.0, "f32")
        b.update([(y, (i,)), (z, (0,))], [one, one], swap)
    with pytest.raises(CompileError, match="update of y, z: two iterations share some of their targets, but not all"):
        run(b.build(), [np.zeros(4, np.float32)] * 2)
