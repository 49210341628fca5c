"""XLA's options of its compiler, which have no effect here, unlike those of our own (`OWN`). Which options XLA has, and
what values they take, its CPU platform tells, so that a wrong name or value is the same error as there."""

from __future__ import annotations

OWN = "trivium_"
"""The first letters of our own options, which the compiler checks itself."""
NO_OPTION = "trivium_has_read_all_options"


def check(serialized: bytes) -> None:
    """Raises a `ParseError` if XLA has no such option, or if an option has another type. XLA reads options one by one,
    before anything else: the last one here does not exist, so that nothing is compiled."""
    from jax._src import xla_bridge
    from jaxlib import xla_client

    from trivium.ir.errors import ParseError

    client = xla_bridge.backends().get("cpu")
    if client is None:
        return
    given = xla_client.CompileOptions.ParseFromString(serialized).env_option_overrides
    named = [(name, value) for name, value in given if not name.startswith(OWN)]
    options = xla_client.CompileOptions()  # without the devices of the program, which the CPU platform need not have
    options.env_option_overrides = [*named, (NO_OPTION, "")]
    try:
        client.compile_and_load("module {func.func @main() {return}}", client.devices()[:1], options)
    except RuntimeError as error:
        reason = str(error).removeprefix("INVALID_ARGUMENT: ")
        if NO_OPTION not in reason:
            raise ParseError(reason) from None
