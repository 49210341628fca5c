"""The program as Trivium compiled it, as instructions of XLA's HLO: what `jax.stages.Compiled.as_text()` shows. It is
written only when a host asks for it. `instructions.py` is the table of ops, `blocks.py` writes kernels and ops,
`special.py` control flow, `entry.py` the whole."""

from trivium.backends.plugin.hlo import special  # noqa: F401  (registers how its ops are written)
from trivium.backends.plugin.hlo.entry import Interface, Port, optimized_program

__all__ = ["Interface", "Port", "optimized_program"]
