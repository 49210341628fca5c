"""StableHLO inside TensorFlow: the op that holds a whole program, as JAX's functions have it in TensorFlow's graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.tensorflow.context import Context, rule
from trivium.ir.builder import inline_block
from trivium.ir.bytecode import deserialize
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.inlining import inline_calls
from trivium.ir.text import parse
from trivium.ir.types import TensorType, Type

BYTECODE = b"ML\xefR"


@rule("XlaCallModule")
def xla_call_module(
    ctx: Context,
    args: list[Value],
    *,
    platforms: tuple[str, ...],
    disabled_checks: tuple[str, ...],
    use_shardy_partitioner: bool,
) -> list[Value]:
    """XlaCallModule(args...; version, module, Sout, Tout, dim_args_spec, platforms, function_list,
    has_token_input_output, disabled_checks, use_shardy_partitioner) -> output..."""
    if set(disabled_checks) - {"platform"}:
        ctx.unsupported("disabled_checks", disabled_checks, "none but platform")
    main = _program(ctx).main
    inline_calls(main)
    operands = [*_platform(ctx, platforms, bool(disabled_checks)), *args]
    _require_fitting(ctx, main, [x.type for x in operands])
    return inline_block(main.body.block, operands, ctx)


def _platform(ctx: Context, platforms: Sequence[str], unchecked: bool) -> list[Value]:
    """The argument in front of the others that tells a program for several platforms which of them it runs on."""
    if len(platforms) < 2 and (unchecked or not platforms):
        return []
    if "CPU" not in platforms:
        ctx.unsupported("platforms", platforms, "the CPU among them")
    return [ctx.elements(np.int32(platforms.index("CPU")))] if len(platforms) > 1 else []


def _require_fitting(ctx: Context, main: Function, given: Sequence[Type]) -> None:
    expected = list(main.function_type.inputs)
    inside = [*expected, *(kind for op in main.walk() for kind in op.result_types)]
    if any(isinstance(kind, TensorType) and not kind.is_static for kind in inside):
        ctx.unsupported("module", "dynamic shapes inside", "static ones")
    if given != expected:
        ctx.unsupported("module", f"arguments {_listed(expected)}", f"those given, {_listed(given)}")


def _program(ctx: Context) -> Module:
    data = ctx.node.get_attr("module")
    try:
        module = deserialize(data) if data.startswith(BYTECODE) else parse(data.decode())
    except UnicodeDecodeError:
        raise Error("module is neither an artifact nor text") from None
    module.verify()
    return module


def _listed(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"
