"""The ops that an elementwise kernel accepts, and the form that it gets by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compiler.fusion.forms.members import ops_of, space_of
from tests.compiler.fusion.test_fuser import fold, spread
from tests.compiler.targets import TARGET
from trivium.compiler.fusion.demands import Opaque
from trivium.compiler.fusion.forms import Elementwise, Rows, arranges_loops
from trivium.compiler.fusion.forms.contraction import Contraction
from trivium.compiler.lowering.index import indices_of
from trivium.ir import ops
from trivium.ir.types import tensor

PRODUCT = ops.DotDimensionNumbers((), (), (1,), (0,))


def members() -> dict:
    def body(b, x, y):
        total = fold(b, x, ops.Add, 0, [1])
        return {
            "sum": total,
            "of columns": fold(b, x, ops.Add, 0, [0]),
            "dot": b.add(ops.DotGeneral(x, y, PRODUCT)),
            "tanh of sum": b.add(ops.Tanh(total)),
            "tanh of row": b.add(ops.Tanh(b.add(ops.Slice(x, (0, 0), (4, 1), (1, 1))))),
            "negate": b.add(ops.Negate(x)),
            "spread": spread(b, total, x, [0]),
        }

    return ops_of([tensor(4, 6), tensor(6, 6)], body)


OPS = members()

ACROSS = replace(TARGET, fusion=replace(TARGET.fusion, across=24))
"""A device on which rows may run across memory."""


def test_a_reduction_of_its_loops_makes_rows() -> None:
    i, j = space_of(4, 6)
    form = Elementwise((i, j)).around(OPS["sum"], indices_of([i]), TARGET)
    assert isinstance(form, Rows)
    assert (form.space, form.points, form.row) == ((i, j), (i,), (j,))


def test_a_reduction_that_all_loops_demand_has_a_separate_row() -> None:
    (i,) = space_of(4)
    form = Elementwise((i,)).around(OPS["sum"], indices_of([i]), TARGET)
    assert isinstance(form, Rows)
    assert form.points == (i,)
    assert [v.extent for v in form.row] == [6]


def test_reductions_along_what_is_not_contiguous_stay_outside() -> None:
    i, j = space_of(4, 6)
    assert Elementwise((i, j)).around(OPS["of columns"], indices_of([j]), TARGET) is None


def test_unless_a_launch_costs_more() -> None:
    i, j = space_of(4, 6)
    form = Elementwise((i, j)).around(OPS["of columns"], indices_of([j]), ACROSS)
    assert isinstance(form, Rows)
    assert (form.points, form.row) == ((j,), (i,))
    less = replace(ACROSS, fusion=replace(ACROSS.fusion, across=23))
    assert Elementwise((i, j)).around(OPS["of columns"], indices_of([j]), less) is None


def test_what_follows_a_reduction_is_stored_for_each_point() -> None:
    i, j = space_of(4, 6)
    form = Elementwise((i, j))
    assert form.is_home(OPS["tanh of sum"], indices_of([i]), TARGET)
    assert not form.is_home(OPS["tanh of row"], indices_of([i, *space_of(1)]), TARGET)
    assert form.loops_of(indices_of([i])) == (i,)
    assert form.loops_of(indices_of([i, j])) == form.space


def test_a_contraction_is_demanded_in_any_order_of_the_loops() -> None:
    i, j = space_of(4, 6)
    form = Elementwise((j, i)).around(OPS["dot"], indices_of([i, j]), TARGET)
    assert isinstance(form, Contraction)
    assert form.space == (i, j)
    assert form.principal is OPS["dot"]
    assert form.around(OPS["dot"], indices_of([i, j]), TARGET) is None


@pytest.mark.parametrize("name", ["sum", "dot"])
def test_what_is_demanded_at_run_time_stays_outside(name: str) -> None:
    assert arranges_loops(OPS[name], TARGET)
    assert Elementwise(space_of(4, 6)).around(OPS[name], Opaque(once=True), TARGET) is None


def test_costly_ops_are_not_computed_in_each_round_of_another_loop() -> None:
    i, j = space_of(4, 6)
    form = Elementwise((i, j))
    assert not form.affords(OPS["tanh of row"], indices_of([i, *space_of(1)]), TARGET)
    assert form.affords(OPS["negate"], indices_of([i, j]), TARGET)
    # The reduction that it follows makes the loop over j a row, so it is computed once for each i.
    assert form.affords(OPS["tanh of sum"], indices_of([i]), TARGET)


def test_ops_that_read_much_join_while_there_are_registers() -> None:
    i, j = space_of(4, 6)
    form, x = Elementwise((i, j)), OPS["negate"].operands[0]
    product = ops_of([tensor(4, 6)], lambda b, x: {"product": b.add(ops.Multiply(x, x))})["product"]
    assert form.taking(product, indices_of([i, j]), TARGET.fusion.reads, TARGET) is form
    assert form.taking(product, indices_of([i, j]), TARGET.fusion.reads + 1, TARGET) is None
    assert x.type == product.results[0].type
