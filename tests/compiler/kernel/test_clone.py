"""Copies of blocks: they compute the same, and share no value or scratch with the original."""

from __future__ import annotations

import numpy as np

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.kernel import Block, Buffer, Kernel, KernelBuilder, Scratch, walk
from trivium.compiler.kernel.clone import clone_into
from trivium.compiler.kernel.interpreter import run


def everything() -> Kernel:
    """Returns a kernel with every kind of instruction."""
    b = KernelBuilder("everything")
    x, y = b.input("x", "f32", (4, 6)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        row, keys = b.scratch("f32", (6,)), b.scratch("i32", (6,))
        with b.parallel(6) as (j,):
            b.store(row, b.multiply(b.load(x, i, j), b.convert(b.add(j, i), "f32")), j)
        with b.parallel(6) as (j,):
            b.store(keys, b.convert(b.load(row, j), "i32"), j)
        b.sort_keys(keys, 6, 0)
        with b.reduction(6, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            weight = b.add(b.load(keys, total.index), b.convert(total.index, "i32"))
            total.yield_(b.add(b.load(row, total.index), b.convert(weight, "f32")))
        with b.while_(total.result) as loop:
            loop.condition(b.compare("GT", loop.carried[0], 10.0))
            loop.yield_(b.divide(loop.carried[0], 2.0))
        with b.if_(b.compare("LT", loop.results[0], 0.0)) as branch:
            branch.yield_(b.apply("negate", loop.results[0]))
        with branch.otherwise():
            branch.yield_(loop.results[0])
        with b.sequential(3, inits=[branch.results[0]]) as steps:
            steps.yield_(b.add(steps.carried[0], 1.0))
        b.store(y, steps.result, i)
    return b.build()


def test_a_copy_computes_the_same() -> None:
    kernel, body = everything(), Block()
    clone_into(kernel.body, [], body)
    copy = Kernel("copy", kernel.params, body)
    copy.verify()
    assert copy.digest() == kernel.digest()
    x = np.linspace(-3, 5, 24, dtype=np.float32)
    results = [np.zeros(4, np.float32) for _ in range(2)]
    for each, result in zip((kernel, copy), results, strict=True):
        run(each, [x, result])
    np.testing.assert_array_equal(*results)


def test_a_copy_shares_nothing_that_the_block_defines() -> None:
    kernel, body = everything(), Block()
    clone_into(kernel.body, [], body)
    defined = [{value for i in walk(block) for value in i.results} for block in (kernel.body, body)]
    scratch = [{i.buffer for i in walk(block) if isinstance(i, Scratch)} for block in (kernel.body, body)]
    assert not defined[0] & defined[1]
    assert not scratch[0] & scratch[1]
    assert len(scratch[1]) == 2


def test_parameters_are_bound_and_buffers_redirected() -> None:
    b = KernelBuilder("outer")
    x, y = b.input("x", "f32", ()), b.output("y", "f32", ())
    with b.block("f32") as block:
        block.yields = [b.add(*block.parameters * 2)]
    five = b.constant(5.0, "f32")
    (ten,) = clone_into(block, [five], b.body)
    b.store(y, ten)
    result, other = np.zeros(1, np.float32), Buffer("z", "f32", (), "out")
    run(b.build(), [np.zeros(1, np.float32), result])
    assert result == 10
    body = Block()
    clone_into(b.body, [], body, {y: other})
    Kernel("redirected", [x, other], body).verify()


def test_values_from_outside_stay() -> None:
    kernel, body = scaled(), Block()
    (loop,) = kernel.body.instructions
    inner = loop.blocks[0]
    i, j = inner.parameters
    clone_into(inner, [j, i], body)
    assert body.instructions[0].operands == (j, i)
