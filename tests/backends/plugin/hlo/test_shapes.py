"""Types and constants, as XLA reads them."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import shown, written

ELEMENTS = {
    "i1": ("pred", "[true, false]", "{1, 0}"),
    "i8": ("s8", "[-3, 5]", "{-3, 5}"),
    "i16": ("s16", "[-3, 500]", "{-3, 500}"),
    "i32": ("s32", "[-3, 70000]", "{-3, 70000}"),
    "i64": ("s64", "[-3, 5000000000]", "{-3, 5000000000}"),
    "ui8": ("u8", "[3, 255]", "{3, 255}"),
    "ui16": ("u16", "[3, 65535]", "{3, 65535}"),
    "ui32": ("u32", "[3, 4294967295]", "{3, 4294967295}"),
    "ui64": ("u64", "[3, 18446744073709551615]", "{3, 18446744073709551615}"),
    "f16": ("f16", "[1.5, -2.0]", "{1.5, -2}"),
    "bf16": ("bf16", "[1.5, -2.0]", "{1.5, -2}"),
    "f32": ("f32", "[1.5, -2.0]", "{1.5, -2}"),
    "f64": ("f64", "[1.5, -2.0]", "{1.5, -2}"),
    "complex<f32>": ("c64", "[(1.5, -2.0), (0.0, 1.0)]", "{(1.5, -2), (0, 1)}"),
    "complex<f64>": ("c128", "[(1.5, -2.0), (0.0, 1.0)]", "{(1.5, -2), (0, 1)}"),
    "f8E4M3FN": ("f8e4m3fn", "[1.5, -2.0]", "{1.5, -2}"),
    "f8E5M2": ("f8e5m2", "[1.5, -2.0]", "{1.5, -2}"),
    "f8E4M3B11FNUZ": ("f8e4m3b11fnuz", "[1.5, -2.0]", "{1.5, -2}"),
    "f8E4M3FNUZ": ("f8e4m3fnuz", "[1.5, -2.0]", "{1.5, -2}"),
    "f8E5M2FNUZ": ("f8e5m2fnuz", "[1.5, -2.0]", "{1.5, -2}"),
    "i4": ("s4", "[-3, 5]", "{-3, 5}"),
    "ui4": ("u4", "[3, 15]", "{3, 15}"),
    "i2": ("s2", "[-2, 1]", "{-2, 1}"),
    "f4E2M1FN": ("f4e2m1fn", "[1.5, -2.0]", "{...}"),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_constants(name: str) -> None:
    xla, elements, wanted = ELEMENTS[name]
    kind = f"tensor<2x{name}>"
    program = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<{elements}> : {kind} return %0 : {kind} }}"
    text = shown(written(program))
    (line,) = [line for line in text.splitlines() if "constant(" in line]
    assert f" = {xla}[2]{{0}}" in re.sub(r":E\(\d\)", "", line)
    assert f"constant({wanted})" in line


def test_many_elements_are_left_out() -> None:
    kind = "tensor<100xi32>"
    numbers = ", ".join(map(str, range(100)))
    program = (
        f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<[{numbers}]> : {kind} return %0 : {kind} }}"
    )
    assert "s32[100]{0} constant({...})" in shown(written(program))


def test_equal_elements_are_a_broadcast_number() -> None:
    kind = "tensor<100x200xi32>"
    program = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<7> : {kind} return %0 : {kind} }}"
    text = shown(written(program))
    assert "s32[] constant(7)" in text
    assert "s32[100,200]{1,0} broadcast(" in text
