"""Which updates are instructions of a device; the others are computed until nothing comes in between
(`test_updates.py` runs both)."""

from __future__ import annotations

import pytest

from trivium.backends.gpu.atomics import instruction


@pytest.mark.parametrize(
    ("operation", "dtype", "name"),
    [
        ("add", "f32", "fadd"), ("add", "f64", "fadd"), ("maximum", "f32", None), ("add", "f16", None),
        ("add", "ui32", "add"), ("maximum", "i64", "max"), ("minimum", "ui32", "umin"), ("xor", "i32", "xor"),
        ("multiply", "i32", None), ("add", "i16", None), ("or", "i1", None),
    ],
)  # fmt: skip
def test_instructions(operation: str, dtype: str, name: str | None) -> None:
    assert instruction(operation, dtype) == name
