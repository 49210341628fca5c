"""The forms of kernels, one file each. Every group begins with the form that `form_of` returns; an elementwise group
becomes rows or a contraction when it accepts such an op."""

from trivium.compiler.costs import interleaves
from trivium.compiler.fusion.forms.elementwise import Elementwise
from trivium.compiler.fusion.forms.form import Form, arranges_loops
from trivium.compiler.fusion.forms.pieces import Interleaved, Padded, Pieces, cuts_nothing_off
from trivium.compiler.fusion.forms.rows import Rows
from trivium.compiler.fusion.forms.stacked import Stacked
from trivium.compiler.fusion.forms.whole import Whole
from trivium.compiler.lowering import kernel_rule
from trivium.compiler.lowering.index import fresh
from trivium.ir import ops
from trivium.ir.core import Operation

__all__ = [
    "Elementwise",
    "Form",
    "Interleaved",
    "Padded",
    "Pieces",
    "Rows",
    "Stacked",
    "Whole",
    "arranges_loops",
    "form_of",
]


def form_of(op: Operation) -> Form:
    """Returns the form of a group whose last op is `op`."""
    if kernel_rule(op) is not None:
        return Whole((), op)
    if isinstance(op, ops.Pad) and cuts_nothing_off(op):
        return Padded(tuple(fresh(op.operand.type.shape)), op)
    if isinstance(op, ops.Concatenate) and interleaves(op.inputs, op.dimension):
        return Interleaved(tuple(fresh((*op.inputs[0].type.shape[:-1], 1))), op)
    space = tuple(fresh(op.results[0].type.shape))
    if isinstance(op, ops.Concatenate):
        return Stacked.of(op) or Pieces(space, op)
    return Elementwise(space)
