"""Finding mistakes: `compare` names the first op that a compiled program, or an import, gets wrong; `minify` reduces a
program that fails to a small one."""

from trivium.debug.compare import compare
from trivium.debug.differences import Difference, difference
from trivium.debug.minify import arguments_of, failure, minify
from trivium.debug.parting import Parting

__all__ = ["Difference", "Parting", "arguments_of", "compare", "difference", "failure", "minify"]
