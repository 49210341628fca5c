"""Options of the compiler that a host passes by name: `jax.jit(f, compiler_options={"trivium_fast_math": True})`."""

from __future__ import annotations

from dataclasses import replace

from trivium.compiler.stages import FLAGS, CompileOptions
from trivium.ir.errors import ParseError

VALUES = {"1": True, "true": True, "0": False, "false": False}


def options_of(lines: str) -> CompileOptions:
    """Returns the options of lines such as `fast_math=1`. Raises a `ParseError` if one of them does not exist, or is
    neither true nor false."""
    found: dict[str, bool] = {}
    for line in lines.splitlines():
        name, _, text = line.partition("=")
        if name not in FLAGS:
            expected = ", ".join(f"trivium_{known}" for known in FLAGS)
            raise ParseError(f"No such compile option: 'trivium_{name}', expected one of {expected}")
        if text.lower() not in VALUES:
            raise ParseError(f"the compile option trivium_{name} has {text!r}, expected True or False")
        found[name] = VALUES[text.lower()]
    return replace(CompileOptions(), **found)
