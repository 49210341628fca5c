"""The op that ends regions. It is declared below the ops that have regions, because building a region needs one."""

from __future__ import annotations

from trivium.ir.declare import PURE, TERMINATOR, Op, Operands


class Return(Op, name="stablehlo.return", traits={PURE, TERMINATOR}):
    """Ends a region, with the values that it returns."""

    values: Operands
