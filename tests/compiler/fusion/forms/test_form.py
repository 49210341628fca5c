"""What all forms of kernels have in common: when an op is accepted, when its results are stored in between, and what it
reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.compiler.fusion.forms.members import ops_of, space_of
from tests.compiler.fusion.test_fuser import fold
from tests.compiler.targets import TARGET
from trivium.compiler.fusion.demands import Opaque
from trivium.compiler.fusion.forms.form import Form, demanded, extended
from trivium.compiler.fusion.group import Group
from trivium.compiler.lowering.index import constant, indices_of, variable
from trivium.compiler.lowering.launches import Launches
from trivium.ir import ops
from trivium.ir.types import tensor


@dataclass(frozen=True, eq=False)
class Plain(Form):
    """A form that adds nothing to what all have."""

    def build(self, launches: Launches, group: Group) -> None:
        raise AssertionError("is not built here")


def members() -> dict:
    def body(b, x, y):
        row = b.add(ops.Slice(x, (0, 0), (4, 1), (1, 1)))
        return {
            "negate": b.add(ops.Negate(x)),
            "add": b.add(ops.Add(x, x)),
            "tanh": b.add(ops.Tanh(x)),
            "tanh of row": b.add(ops.Tanh(row)),
            "negate row": b.add(ops.Negate(row)),
            "sum": fold(b, x, ops.Add, 0, [1]),
            "sum of units": fold(b, row, ops.Add, 0, [1]),
            "dot": b.add(ops.DotGeneral(x, y, ops.DotDimensionNumbers((), (), (1,), (0,)))),
            "transpose": b.add(ops.Transpose(x, (1, 0))),
            "pad": b.add(ops.Pad(x, b.add(ops.Constant(np.float32(0))), (0, 1), (0, 0), (0, 0))),
            "scalar": b.add(ops.Sine(b.add(ops.Constant(np.float32(2))))),
        }

    return ops_of([tensor(4, 6), tensor(6, 6)], body)


OPS = members()
I, J = space_of(4, 6)  # noqa: E741
FORM = Plain((I, J))
BOTH = indices_of([I, J])


@pytest.mark.parametrize("name", ["sum", "dot"])
def test_ops_that_need_separate_loops_do_not_join(name: str) -> None:
    """Unless a form overrides this."""
    demand = indices_of([I]) if name == "sum" else BOTH
    assert FORM.taking(OPS[name], demand, 0, TARGET) is None


@pytest.mark.parametrize(
    ("name", "once", "taken"),
    [
        ("negate", True, True),
        ("negate", False, False),
        ("tanh", True, True),
        ("transpose", True, False),
        ("pad", True, False),
    ],
)
def test_demands_that_are_known_at_run_time_only(name: str, once: bool, taken: bool) -> None:
    """Only ops whose elements come from the same position, and only if none is computed twice."""
    assert (FORM.taking(OPS[name], Opaque(once), 0, TARGET) is FORM) == taken


@pytest.mark.parametrize(("name", "others", "taken"), [("add", 32, True), ("add", 33, False), ("negate", 33, True)])
def test_only_ops_of_several_operands_add_to_what_is_read(name: str, others: int, taken: bool) -> None:
    assert TARGET.fusion.reads == 32
    assert (FORM.taking(OPS[name], BOTH, others, TARGET) is FORM) == taken


@pytest.mark.parametrize(
    ("name", "demand", "affords"),
    [
        ("tanh", BOTH, True),
        # The same for every j: cheap ops are computed again, expensive ones are not.
        ("negate row", (variable(I), constant(0)), True),
        ("tanh of row", (variable(I), constant(0)), False),
        ("sum of units", (variable(I),), True),
        ("pad", (variable(I), constant(0)), False),
        # A single number is computed only once.
        ("scalar", (), True),
    ],
)  # fmt: skip
def test_what_is_computed_again(name: str, demand: tuple, affords: bool) -> None:
    assert FORM.affords(OPS[name], demand, TARGET) == affords


def test_costs_of_the_target_decide() -> None:
    demand = variable(I), constant(0)
    assert FORM.affords(OPS["tanh of row"], demand, replace(TARGET, recompute_cost=1e6))
    assert not FORM.affords(OPS["negate row"], demand, replace(TARGET, recompute_cost=0.5))


@pytest.mark.parametrize(("repeats", "affords"), [(2, True), (3, False)])
def test_elements_are_computed_twice_at_most(repeats: int, affords: bool) -> None:
    """If loops run over more elements than the result has."""
    i, j, again = space_of(4, 6, repeats)
    demand = variable(i), (variable(j) + variable(again)) % 6
    assert Plain((i, j, again)).affords(OPS["tanh"], demand, TARGET) == affords


@pytest.mark.parametrize(
    ("asked", "misses"), [((), False), ((I, J), False), ((I,), True), ((J,), True), (space_of(4), True)], ids=str
)
def test_loops_that_a_demand_misses(asked: tuple, misses: bool) -> None:
    assert FORM.misses_loops(set(asked)) == misses


def test_loops_of_one_iteration_are_not_missed() -> None:
    i, one = space_of(4, 1)
    assert not Plain((i, one)).misses_loops({i})
    assert extended([i, one]) == {i}
    assert extended([]) == set()


@pytest.mark.parametrize(
    ("name", "demand", "home"),
    [
        ("tanh", BOTH, True),
        ("transpose", BOTH, False),
        ("transpose", indices_of([J, I]), False),
        ("tanh", (variable(I), variable(J) * -1 + 5), False),
        ("tanh", (variable(I), constant(0)), False),
        ("sum", indices_of([I]), False),
    ],
)
def test_where_results_can_be_stored(name: str, demand: tuple, home: bool) -> None:
    """If the loops compute every element of them, once and in order."""
    assert FORM.is_home(OPS[name], demand, TARGET) == home


def test_how_often_elements_are_demanded() -> None:
    assert demanded(OPS["tanh"], BOTH) == ({I, J}, 1)
    assert demanded(OPS["tanh of row"], (variable(I), constant(0))) == ({I}, 1)
    assert demanded(OPS["sum"], (constant(2),)) == (set(), 0.25)
    assert demanded(OPS["sum"], ((variable(I) * 6 + variable(J)) // 6,)) == ({I}, 1)


def test_defaults() -> None:
    assert FORM.principal is None
    assert FORM.first_demand() == BOTH
    assert FORM.around(OPS["sum"], indices_of([I]), TARGET) is None
    assert (FORM.buffers(OPS["tanh"]), FORM.updated()) == ((), ())
    (operand,) = OPS["transpose"].operands
    assert list(FORM.reads(OPS["transpose"], indices_of([J, I]))) == [(operand, BOTH)]
