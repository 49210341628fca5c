"""The names that an artifact uses for the host functions that a program calls."""

from __future__ import annotations

from trivium.compiler.artifact import NativeFunction, PythonFunction
from trivium.compiler.host import CHOLESKY, RANDOM_STATE, RECEIVE, SEND, TRIANGULAR_SOLVE
from trivium.compiler.program import HostCall, PythonCall
from trivium.ir import lapack
from trivium.ir.errors import CompileError

_ROUTINES = {CHOLESKY: "potrf", TRIANGULAR_SOLVE: "trsm", **{name: name for name in lapack.ROUTINES}}
"""The names of routines, without the letter of their type."""

_OWN = {RANDOM_STATE: "trivium_random_state", SEND: "trivium_send", RECEIVE: "trivium_recv"}
"""Functions of the native runtime that use no routine."""

_LETTERS = {("f32", False): "s", ("f64", False): "d", ("f32", True): "c", ("f64", True): "z"}
"""LAPACK's letters, by the type of a value's elements and whether they are complex."""


def described(call: HostCall | PythonCall) -> NativeFunction | PythonFunction:
    """Returns the name of the function that a step calls; raises an Error if no function computes it."""
    if isinstance(call, PythonCall):
        return PythonFunction(call.target, call.program)
    if call.target in _OWN:
        return NativeFunction(_OWN[call.target])
    if call.target in _ROUTINES:
        first = call.arguments[0]
        letter = _LETTERS.get((first.dtype, first.is_complex))
        if letter is not None:
            name = _ROUTINES[call.target]
            if first.is_complex and call.target in lapack.ROUTINES:
                name = lapack.ROUTINES[call.target].complex_name or name
            return NativeFunction(f"trivium_{call.target}_{letter}", letter + name)
    kinds = ", ".join(argument.dtype for argument in call.arguments)
    raise CompileError(f"the CPU backend has no host function {call.target!r} of ({kinds})")
