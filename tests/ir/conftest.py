"""MLIR itself, as JAX ships it, as the judge of text."""

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def mlir() -> Callable[[str], str]:
    """Reads a text with MLIR and returns it as MLIR prints it."""
    ir = pytest.importorskip("jaxlib.mlir.ir")
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    sdy.register_dialect(context)

    def read_and_print(text: str) -> str:
        with context:
            return str(ir.Module.parse(text))

    return read_and_print
