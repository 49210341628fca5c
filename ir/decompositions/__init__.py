"""The meaning of CHLO's ops in StableHLO's own ops. Artifacts, which have no CHLO, need it; compilers may use it."""

from trivium.ir.decompositions import broadcasting, elementary, integers, programs, special  # noqa: F401  fill the table
from trivium.ir.decompositions.table import DECOMPOSITIONS, decompose

__all__ = ["DECOMPOSITIONS", "decompose"]
