"""What `trivium.explain` says about the programs that JAX compiles for Trivium's devices."""

from __future__ import annotations

from trivium import journal
from trivium.backends.plugin.compiler import Compiled
from trivium.ir.func import Module
from trivium.ir.location import CallSiteLocation, FileLocation, Location

TRACED = (
    "JAX traces a function, and each derivative of it, for each combination of shapes, dtypes and static arguments. To "
    "compile less often, pad arrays to a few shapes, and pass numbers as arguments that are not static."
)


def tell_compiled(executable: Compiled) -> None:
    """Tells the journal of a program."""
    module = executable.stages.module
    about = " at ".join(filter(None, (module.sym_name or executable.name, _place(module))))
    given = ", ".join(map(str, module.main.function_type.inputs)) or "no arguments"
    journal.compiled(about, about, given, executable, TRACED)


def _place(module: Module) -> str:
    """Returns the user's line where a function begins. JAX gives constants and converted arguments the line of the
    call: the first op that was called from somewhere else is in the function."""
    places = [op.location for op in module.main.body.block]
    calls = (call for place in places for call in _found(place, CallSiteLocation))
    lines = _found(next(calls, places[0]), FileLocation)
    return lines[0].describe() if lines else ""


def _found(location: Location, kind: type[Location]) -> list[Location]:
    """Returns the locations of a kind in another one, the innermost function first."""
    inner = [found for child in location.children for found in _found(child, kind)]
    return [location, *inner] if isinstance(location, kind) else inner
