"""MLIR itself, as JAX ships it, as the judge of text."""

from collections.abc import Callable

import pytest

from tests.ir.bytecode.mlir import context, parsed


@pytest.fixture(scope="session")
def mlir() -> Callable[[str], str]:
    """Reads a text with MLIR and returns it as MLIR prints it."""
    context()
    return lambda text: str(parsed(text))
