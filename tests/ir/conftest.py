"""A fixture that reads and prints text with MLIR itself, as JAX ships it, to compare ours with."""

from collections.abc import Callable

import pytest

from tests.ir.bytecode.mlir import context, parsed


@pytest.fixture(scope="session")
def mlir() -> Callable[[str], str]:
    """Reads a text with MLIR and returns it as MLIR prints it."""
    context()
    return lambda text: str(parsed(text))
