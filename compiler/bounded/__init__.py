"""Programs for several combinations of sizes at once."""

from trivium.compiler.bounded import control, draws, indexing, orders, shapes, sums
from trivium.compiler.bounded.program import BoundedProgram, bounded, bounded_where_valid
from trivium.compiler.bounded.writer import Unbounded

FAMILIES = (control, draws, indexing, orders, shapes, sums)
"""The modules of rules; importing them fills the table."""

__all__ = ["FAMILIES", "BoundedProgram", "Unbounded", "bounded", "bounded_where_valid"]
