"""What is known about the index arithmetic of kernels."""

from __future__ import annotations

import pytest

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.kernel import (
    Block,
    Buffer,
    KernelBuilder,
    Load,
    Loop,
    Register,
    Store,
    While,
    expression,
)
from trivium.compiler.kernel.affine import Analysis, accesses, atom_offsets, holds
from trivium.compiler.kernel.index import Quotient, Remainder, variable
from trivium.compiler.kernel.lanes import neighbours


def test_linear_addresses() -> None:
    b = KernelBuilder("address")
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (8, 4))
    with b.parallel(8, 4) as (i, j):
        b.store(y, b.load(x, expression([(j, -1)], 3), i), i, j)
    kernel = b.build()
    analysis = Analysis(kernel)
    (loop,) = (k for k in kernel.body.instructions if isinstance(k, Loop))
    (load,) = (k for k in loop.body.instructions if isinstance(k, Load))
    address = analysis.address(load.buffer, load.indices)
    assert (analysis.step(address, i), analysis.step(address, j), address.offset) == (1, -8, 24)


def test_views_have_addresses_with_their_strides() -> None:
    view = Buffer("x", "f32", (4, 8), "in", strides=(1, 4), offset=3)
    i, j = Register("i64"), Register("i64")
    address = Analysis(Block()).address(view, (variable(i), variable(j) + 1))
    assert (address.terms, address.offset) == ({i: 1, j: 4}, 7)


def test_a_quotient_has_no_constant_step() -> None:
    b = KernelBuilder("quotient")
    x, y = b.input("x", "f32", (8,)), b.output("y", "f32", (12,))
    with b.parallel(12) as (i,):
        b.store(y, b.load(x, variable(i) // 2), i)
    kernel = b.build()
    analysis = Analysis(kernel)
    assert analysis.step(analysis.address(x, (variable(i) // 2,)), i) is None
    assert analysis.step(analysis.address(y, (variable(i),)), i) == 1
    (loop,) = kernel.body.instructions
    assert len(analysis.divisions[loop.body]) == 1
    assert i in analysis.escaping


@pytest.mark.parametrize("kind", [Quotient, Remainder])
@pytest.mark.parametrize(
    ("factor", "offset", "divisor", "lanes", "multiple", "is_known"),
    [
        (1, 0, 64, 16, 16, True),
        (1, 0, 24, 16, 16, False),
        (1, 0, 24, 8, 8, True),
        (1, 8, 64, 16, 16, False),
        (1, -16, 64, 16, 16, True),
        (1, 5, 2, 8, 8, True),
        (2, 1, 64, 16, 16, True),
        (-1, 63, 64, 16, 16, True),
        (-1, 0, 64, 16, 16, False),
        (3, 0, 64, 16, 16, False),
    ],
)
def test_quotients_in_lanes(
    kind: type, factor: int, offset: int, divisor: int, lanes: int, multiple: int, is_known: bool
) -> None:
    """Lanes are inside one period of the quotient, or are whole ones; wherever they are, they differ alike."""
    i = Register("i64")
    offsets = atom_offsets(kind(variable(i) * factor + offset, divisor), neighbours(i, lanes, multiple))
    assert (offsets is not None) == is_known
    if offsets is not None:
        for first in range(0, 20 * multiple, multiple):
            numbers = [divmod((first + lane) * factor + offset, divisor)[kind is Remainder] for lane in range(lanes)]
            assert [number - numbers[0] for number in numbers] == list(offsets)


def test_numbers_that_are_stored_escape() -> None:
    b = KernelBuilder("escape")
    y = b.output("y", "i64", (4, 4))
    with b.parallel(4, 4) as (i, j):
        b.store(y, j, i, j)
    assert Analysis(b.build()).escaping == {j}


def test_carried_values_depend_on_what_the_loop_reads() -> None:
    b = KernelBuilder("carried")
    x, y = b.input("x", "f32", (3, 4)), b.output("y", "f32", (3,))
    with b.parallel(3) as (i,):
        with b.sequential(4, inits=[b.constant(0.0, "f32")]) as loop:
            loop.yield_(b.add(loop.carried[0], b.load(x, i, loop.index)))
        b.store(y, loop.result, i)
    analysis = Analysis(b.build())
    assert i in analysis.depends(loop.carried[0])
    assert i in analysis.depends(loop.result)


def test_accesses_are_found_in_nested_blocks() -> None:
    kernel = scaled()
    kinds = [type(access) for access in accesses(kernel.body)]
    assert kinds == [Load, Store]
    assert holds(kernel.body, Loop)
    assert not holds(kernel.body, While)
