"""StableHLO programs inside a framework's graph: JAX's exported functions, also inside TensorFlow's graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivium.importers.context import Context
from trivium.ir.builder import inline_block
from trivium.ir.bytecode import deserialize
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.inlining import inline_calls
from trivium.ir.text import parse
from trivium.ir.types import TensorType, Type

BYTECODE = b"ML\xefR"


def inline_program(ctx: Context[Any, Any], data: bytes, operands: Sequence[Value]) -> list[Value]:
    """Converts a program, an artifact or text, at the cursor for operands."""
    main = _read(data).main
    inline_calls(main)
    _require_fitting(ctx, main, [x.type for x in operands])
    return inline_block(main.body.block, operands, ctx)


def platform_of(ctx: Context[Any, Any], platforms: Sequence[str], name: str) -> list[Value]:
    """Returns the first argument of a program for several platforms, which says which of them it runs on: the platform
    called `name`."""
    if name not in platforms:
        ctx.unsupported("platforms", platforms, "the CPU among them")
    return [ctx.elements(np.int32(platforms.index(name)))] if len(platforms) > 1 else []


def _require_fitting(ctx: Context[Any, Any], main: Function, given: Sequence[Type]) -> None:
    expected = list(main.function_type.inputs)
    inside = [*expected, *(kind for op in main.walk() for kind in op.result_types)]
    if any(isinstance(kind, TensorType) and not kind.is_static for kind in inside):
        ctx.unsupported("module", "dynamic shapes inside", "static ones")
    if given != expected:
        ctx.unsupported("module", f"arguments {_listed(expected)}", f"those given, {_listed(given)}")


def _read(data: bytes) -> Module:
    try:
        module = deserialize(data) if data.startswith(BYTECODE) else parse(data.decode())
    except UnicodeDecodeError:
        raise Error("module is neither an artifact nor text") from None
    module.verify()
    return module


def _listed(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"
