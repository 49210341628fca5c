"""What the client of plugins refuses."""

import pytest

import trivium
from tests.backends.table.programs import ADD


def test_options_and_dynamic_shapes_are_refused() -> None:
    with pytest.raises(trivium.Error, match="threads, fast_math, autotune"):
        trivium.compile(ADD, device="trivium", threads=1)
    dynamic = trivium.parse("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    with pytest.raises(trivium.Error, match="static shapes only"):
        trivium.compile(dynamic, device="trivium")
