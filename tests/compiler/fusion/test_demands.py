"""The elements that ops read for the elements that are demanded of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_programs.generator import scalar_region
from trivium.compiler.fusion.demands import (
    Opaque,
    covers,
    plain_variables,
    reads,
    reads_once,
    row_indices,
    same_extents,
)
from trivium.compiler.lowering.index import Index, Variable, constant, fresh, indices_of, variable
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, tensor

X = Value(tensor(4, 6))
ROW, COLUMN = fresh((4, 6))
ALL = indices_of([ROW, COLUMN])


def demanded(op, demand) -> dict:
    return dict(reads(op, demand))


def test_elementwise_ops_pass_a_demand_on() -> None:
    scalar = Value(tensor())
    assert demanded(ops.Negate(X), ALL) == {X: ALL}
    clamp = ops.Clamp(scalar, X, scalar)
    assert demanded(clamp, ALL) == {scalar: (), X: ALL}


def test_ops_that_move_elements_change_the_indices() -> None:
    assert demanded(ops.Transpose(X, (1, 0)), indices_of([COLUMN, ROW])) == {X: ALL}
    assert demanded(ops.Reverse(X, (0,)), ALL) == {X: (variable(ROW) * -1 + 3, variable(COLUMN))}
    part = ops.Slice(X, (1, 0), (4, 6), (1, 2))
    i, j = fresh((3, 3))
    assert demanded(part, indices_of([i, j])) == {X: (variable(i) + 1, variable(j) * 2)}


def test_a_reduction_over_extent_one_reads_one_element_for_each() -> None:
    column, init = Value(tensor(4, 1)), Value(tensor())
    op = ops.Reduce([column], [init], (1,), scalar_region(ops.Add))
    assert demanded(op, indices_of([ROW])) == {column: (variable(ROW), constant(0)), init: ()}


def test_reductions_and_gathers_read_what_only_run_time_knows() -> None:
    init, indices = Value(tensor()), Value(tensor(3, of=I32))
    op = ops.Reduce([X], [init], (1,), scalar_region(ops.Add))
    assert demanded(op, indices_of([ROW]))[X].once  # type: ignore[union-attr]
    numbers = ops.GatherDimensionNumbers((1,), (0,), (), (), (0,), 1)
    found = demanded(ops.Gather(X, indices, numbers, (1, 6)), ALL)
    assert isinstance(found[X], Opaque)
    assert found[indices] == indices_of([ROW]), "an index is read where it is listed"
    pairs = Value(tensor(3, 2, of=I32))
    numbers = ops.GatherDimensionNumbers((), (0, 1), (), (), (0, 1), 1)
    found = demanded(ops.Gather(X, pairs, numbers, (1, 1)), indices_of([ROW]))
    assert all(isinstance(demand, Opaque) for demand in found.values())


def test_an_index_is_listed_where_the_vector_dimension_is() -> None:
    indices = Value(tensor(4, 1, 5, of=I32))
    numbers = ops.GatherDimensionNumbers((), (1,), (0,), (0,), (1,), 1)
    first, last = Variable(4), Variable(5)
    found = demanded(ops.Gather(X, indices, numbers, (1, 1)), indices_of([first, last]))
    assert found[indices] == (variable(first), constant(0), variable(last))


def test_a_broadcast_asks_for_elements_more_than_once() -> None:
    row = Value(tensor(6))
    op = ops.BroadcastInDim(row, broadcast_dimensions=(1,), result=tensor(4, 6))
    (demand,) = demanded(op, Opaque(once=True)).values()
    assert not demand.once
    (demand,) = demanded(ops.Transpose(X, (1, 0)), Opaque(once=True)).values()
    assert demand.once


def test_a_demand_covers_a_value_where_it_is_for_all_elements_in_order() -> None:
    assert covers(ALL, (ROW, COLUMN), (4, 6))
    assert not covers(indices_of([COLUMN, ROW]), (ROW, COLUMN), (4, 6))
    assert not covers(ALL, (ROW, COLUMN), (6, 4))
    assert not covers(Opaque(once=True), (ROW, COLUMN), (4, 6))


@pytest.mark.parametrize(
    ("demand_", "expected"),
    [
        (ALL, [ROW, COLUMN]),
        ((variable(COLUMN), constant(0)), [COLUMN]),
        ((variable(ROW), variable(ROW)), None),
        ((variable(ROW) * 2,), None),
        ((variable(ROW) + 1,), None),
    ],
)
def test_plain_variables(demand_: tuple[Index, ...], expected: list | None) -> None:
    assert plain_variables(demand_) == expected


def test_units_do_not_count() -> None:
    assert same_extents(fresh((1, 4, 6)), (4, 1, 6))
    assert not same_extents(fresh((4, 6)), (6, 4))
    (row,) = fresh((6,))
    assert row_indices([row], (1, 6)) == (constant(0), variable(row))


def test_ops_that_read_each_element_once() -> None:
    update = ops.DynamicUpdateSlice(X, Value(tensor(1, 6)), [Value(tensor(of=np.dtype(np.int32)))] * 2)
    assert reads_once(update, update.operands[1])
    assert not reads_once(ops.Negate(X), X)
