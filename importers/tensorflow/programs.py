"""StableHLO inside TensorFlow: the op that contains a whole program, which is the form of JAX's functions in
TensorFlow's graphs."""

from __future__ import annotations

from trivium.importers.programs import inline_program, platform_of
from trivium.importers.tensorflow.context import Context, rule
from trivium.ir.core import Value


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
    unchecked = len(platforms) < 2 and (disabled_checks or not platforms)
    platform = [] if unchecked else platform_of(ctx, platforms, "CPU")
    return inline_program(ctx, ctx.node.get_attr("module"), [*platform, *args])
