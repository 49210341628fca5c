"""A contraction and its epilogue as one kernel."""

from __future__ import annotations

from tests.compiler.fusion.forms.members import ops_of, space_of
from trivium.compiler.fusion.forms.contraction import Contraction
from trivium.compiler.fusion.turning import Turned
from trivium.compiler.lowering.index import indices_of
from trivium.ir import ops
from trivium.ir.types import tensor

PRODUCT = ops.DotDimensionNumbers((), (), (1,), (0,))


def members() -> dict:
    def body(b, x, y):
        dot = b.add(ops.DotGeneral(b.add(ops.Transpose(x, (1, 0))), y, PRODUCT))
        return {"dot": dot, "negate": b.add(ops.Negate(dot))}

    return ops_of([tensor(8, 4), tensor(8, 6)], body)


OPS = members()
SPACE = space_of(4, 6)
FORM = Contraction(SPACE, OPS["dot"], Turned())


def test_operands_are_read_from_memory_without_their_transposes() -> None:
    transpose, y = OPS["dot"].operands
    assert list(FORM.buffers(OPS["dot"])) == [transpose.defining_op.operands[0], y]  # type: ignore[union-attr]
    assert list(FORM.reads(OPS["dot"], indices_of(SPACE))) == []


def test_the_epilogue_reads_the_sums() -> None:
    assert list(FORM.buffers(OPS["negate"])) == []
    assert dict(FORM.reads(OPS["negate"], indices_of(SPACE))) == {OPS["dot"].results[0]: indices_of(SPACE)}
