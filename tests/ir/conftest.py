"""MLIR itself, as JAX ships it, as the judge of text."""

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def mlir() -> Callable[[str], str]:
    """Reads a text with MLIR and returns it as MLIR prints it."""
    pytest.importorskip("jaxlib.mlir.ir")
    from tests.ir.bytecode.mlir import parsed

    return lambda text: str(parsed(text))
