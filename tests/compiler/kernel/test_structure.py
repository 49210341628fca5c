"""Buffers, and walking through instructions."""

from __future__ import annotations

import pytest

from tests.compiler.kernel.kernels import matmul, scaled
from trivium.compiler.kernel import Apply, Buffer, Constant, KernelBuilder, Load, Loop, Store, row_major, walk
from trivium.compiler.kernel.index import variable
from trivium.compiler.kernel.structure import symbols


@pytest.mark.parametrize(
    ("shape", "strides"), [((), ()), ((5,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 4), (0, 4, 1)), ((3, 1), (1, 1))]
)
def test_buffers_are_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert row_major(shape) == Buffer("x", "f32", shape, "in").layout == strides


def test_views_have_their_own_layout_and_the_size_of_their_shape() -> None:
    view = Buffer("x", "f64", (4, 2), "in", strides=(1, 16), offset=5)
    assert (view.layout, view.size, view.nbytes) == ((1, 16), 8, 64)


def test_narrow_elements_take_a_byte() -> None:
    assert Buffer("x", "i4", (3,), "in").nbytes == 3
    assert Buffer("x", "i1", (3,), "in").nbytes == 3


def test_walk_visits_outer_instructions_first() -> None:
    assert [type(i) for i in walk(scaled().body)] == [Loop, Load, Constant, Apply, Store]
    kinds = [i.kind for i in walk(matmul().body) if isinstance(i, Loop)]
    assert kinds == ["parallel", "reduction"]


def test_walk_visits_every_branch() -> None:
    b = KernelBuilder("branches")
    x, y = b.input("x", "i1", ()), b.output("y", "f32", ())
    with b.if_(b.load(x)):
        b.store(y, 1.0)
    stores = [i for i in walk(b.body) if isinstance(i, Store)]
    with b.if_(b.load(x)) as branch, branch.otherwise():
        b.store(y, 2.0)
    assert len(stores) == 1
    assert len([i for i in walk(b.body) if isinstance(i, Store)]) == 2


def test_operands_of_accesses_are_the_symbols_of_their_indices() -> None:
    kernel = scaled()
    (loop,) = (i for i in kernel.body.instructions if isinstance(i, Loop))
    (load,) = (i for i in loop.body.instructions if isinstance(i, Load))
    assert load.operands == tuple(loop.indices)
    assert symbols(variable(loop.indices[0]) * 3 + 1) == (loop.indices[0],)
