"""Which terms of neighbouring windows read the same elements."""

from __future__ import annotations

from itertools import chain, product

import pytest

from trivium.compiler.kernel import Index, KernelBuilder, Loop, expression
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.overlap import Term, overlap
from trivium.compiler.kernel.structure import walk


def groups(stride: int, dilation: int, size: int, iterations: int, factor: bool = True) -> list[list[Term]]:
    """Returns the terms of windows that slide along two dimensions."""
    b = KernelBuilder("windows")
    x, w, y = b.input("x", "f32", (90, 90)), b.input("w", "f32", (size, size)), b.output("y", "f32", (20, 20))
    with b.parallel(20, 20) as (i, j):
        with b.reduction(size, size, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            k, m = loop.indices
            place: list[Index] = [expression([(i, stride), (k, dilation)]), expression([(j, 1), (m, 1)])]
            weight = b.load(w, k, m)
            loop.yield_(b.multiply(weight, b.load(x, *place)) if factor else weight)
        b.store(y, loop.result, i, j)
    kernel = b.build()
    (window,) = (each for each in walk(kernel.body) if isinstance(each, Loop) and each.kind == "reduction")
    return overlap(window, (size, size), i, iterations, j, Analysis(kernel))


@pytest.mark.parametrize(("stride", "dilation"), [*product((1, 2, 3), (1, 2))])
@pytest.mark.parametrize(("size", "iterations"), [(3, 4), (2, 5), (5, 3)])
def test_terms_of_a_group_read_the_same_element(stride: int, dilation: int, size: int, iterations: int) -> None:
    found = groups(stride, dilation, size, iterations)
    read = [
        {(stride * term.iteration + dilation * term.position[0], term.position[1]) for term in group} for group in found
    ]
    assert all(len(places) == 1 for places in read)
    order = list(chain.from_iterable(read))
    assert order == sorted(set(order)), "each element once, in order"
    every = product(range(iterations), product(range(size), range(size)))
    assert set(chain.from_iterable(found)) == {Term(*pair) for pair in every}


def test_what_does_not_change_along_lanes_is_not_shared() -> None:
    assert all(len(group) == 1 for group in groups(1, 1, 3, 4, factor=False))
