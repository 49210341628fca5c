"""Calls MLIR itself, as JAX ships it, to read and write text, bytecode and artifacts."""

import io
from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def context() -> Any:
    """Returns a context with every dialect of artifacts."""
    if find_spec("jaxlib") is None:
        import pytest  # only here: the fuzzer, which imports this file, does not need pytest

        pytest.skip("jaxlib, which has MLIR, is not installed")
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    with context:
        # MLIR offers no other way to load the dialect of quantized types.
        empty = stablehlo.serialize_portable_artifact(ir.Module.parse(""), "1.0.0")
        stablehlo.deserialize_portable_artifact(context, empty)
    return context


def parsed(program: str | bytes) -> Any:
    """Parses a text, or plain bytecode, with MLIR. Raises if MLIR cannot read it, or finds it invalid."""
    from jaxlib.mlir import ir

    with context():
        module = ir.Module.parse(program)
        module.operation.verify()
        return module


def plain(text: str, version: int = 6) -> bytes:
    """Returns the text as plain bytecode, in that version of the encoding."""
    out = io.BytesIO()
    parsed(text).operation.write_bytecode(out, desired_version=version)
    return out.getvalue()


def text_of(artifact: bytes) -> str:
    """Reads an artifact with MLIR, and returns its text."""
    from jaxlib.mlir.dialects import stablehlo

    with context():
        return str(stablehlo.deserialize_portable_artifact(context(), artifact))


def artifact(text: str, version: str) -> bytes:
    """Returns the artifact that MLIR writes for a text and a version of StableHLO, with attributes of any dialect
    allowed.
    """
    from jaxlib.mlir.dialects import stablehlo

    with context():
        return stablehlo.serialize_portable_artifact(parsed(text), version, True)
