"""Reads and writes MLIR text: the pretty forms of StableHLO, CHLO and `func`, and the generic form of every op."""

from trivium.ir.text.assembly import register_form
from trivium.ir.text.parser import parse
from trivium.ir.text.printer import print_module, print_op, text_pieces

__all__ = ["parse", "print_module", "print_op", "register_form", "text_pieces"]
