"""The ops that a kernel of rows accepts, and the indices at which its members read."""

from __future__ import annotations

from dataclasses import replace

from tests.compiler.fusion.forms.members import ops_of, space_of
from tests.compiler.fusion.test_fuser import fold
from tests.compiler.targets import TARGET
from trivium.compiler.fusion.forms import Rows
from trivium.compiler.lowering.index import indices_of
from trivium.ir import ops
from trivium.ir.types import tensor

ROW, COLUMN = space_of(4, 6)
FORM = Rows((ROW, COLUMN), (ROW,), (COLUMN,))


def members() -> dict:
    def body(b, x, y):
        total = fold(b, x, ops.Add, 0, [1])
        return {
            "sum": total,
            "of another row": fold(b, y, ops.Add, 0, [1]),
            "root": b.add(ops.Sqrt(total)),
            "exponential": b.add(ops.Exponential(x)),
        }

    return ops_of([tensor(4, 6), tensor(4, 7)], body)


OPS = members()


def test_reductions_over_the_same_row_join() -> None:
    assert FORM.around(OPS["sum"], indices_of([ROW]), TARGET) is FORM
    assert FORM.around(OPS["of another row"], indices_of([ROW]), TARGET) is None
    assert FORM.around(OPS["sum"], indices_of([COLUMN]), TARGET) is None


def test_reductions_down_the_columns_of_large_arrays_do_not_depend_on_one_another() -> None:
    total = ops_of([tensor(4, 6)], lambda b, x: {"sum": fold(b, x, ops.Add, 0, [0])})["sum"]
    form = Rows((COLUMN, ROW), (COLUMN,), (ROW,))
    for most, expected in ((0, form), (24, form), (23, None)):
        target = replace(TARGET, fusion=replace(TARGET.fusion, across=most))
        assert form.taking(total, indices_of([COLUMN]), 0, target) is expected
        assert form.around(total, indices_of([COLUMN]), target) is form


def test_a_reduction_reads_the_row() -> None:
    x = OPS["sum"].operands[0]
    assert dict(FORM.reads(OPS["sum"], indices_of([ROW])))[x] == indices_of([ROW, COLUMN])


def test_what_holds_for_a_point_is_computed_once_for_it() -> None:
    assert FORM.affords(OPS["root"], indices_of([ROW]), TARGET)
    assert not Rows((ROW, COLUMN), (), (ROW, COLUMN)).affords(OPS["root"], indices_of([ROW]), TARGET)


def test_results_of_points_and_of_rows_can_be_stored() -> None:
    assert FORM.is_home(OPS["sum"], indices_of([ROW]), TARGET)
    assert FORM.is_home(OPS["exponential"], indices_of([ROW, COLUMN]), TARGET)
    assert FORM.is_home(OPS["root"], indices_of([ROW]), TARGET)
    assert not FORM.is_home(OPS["root"], indices_of([COLUMN]), TARGET)
    assert not FORM.is_home(OPS["exponential"], indices_of([COLUMN, ROW]), TARGET)
