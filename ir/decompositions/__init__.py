"""What CHLO's ops mean in StableHLO's own. Artifacts need it, which have no CHLO; compilers may."""

from trivium.ir.decompositions import broadcasting, elementary, integers, programs, special  # noqa: F401  fill the table
from trivium.ir.decompositions.table import DECOMPOSITIONS, decompose

__all__ = ["DECOMPOSITIONS", "decompose"]
