"""Comparisons of floats in total order, compiled and interpreted: with zeros and NaNs of both signs, and all NaNs."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.ir.interpreter import evaluate

BYTES = ("f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU")
SMALLER = {"f4E2M1FN": 16, "f6E2M3FN": 64, "f6E3M2FN": 64}
"""How many numbers there are."""
WIDER = {"f16": (10, 16), "bf16": (7, 16), "f32": (23, 32), "f64": (52, 64)}
"""The bits of a mantissa, and of a number."""


def numbers(kind: str) -> np.ndarray:
    """Returns all numbers of a byte; of wider types, some next to zero, one and infinity, and NaNs."""
    if kind not in WIDER:
        return np.arange(SMALLER.get(kind, 256), dtype=np.uint8).view(numpy_dtype(kind))
    mantissa, width = WIDER[kind]
    infinity = (1 << (width - 1)) - (1 << mantissa)
    one = (1 << (width - 2)) - (1 << mantissa)
    found = [
        0,
        1,
        one - 1,
        one,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + (1 << (mantissa - 1)),
        (1 << width - 1) - 1,
    ]
    signed = [*found, *(number | 1 << (width - 1) for number in found)]
    return np.array(signed, f"u{width // 8}").view(numpy_dtype(kind))


def check(text: str, *arrays: np.ndarray) -> None:
    module = trivium.parse(text)
    (wanted,), (found,) = evaluate(module.clone(), *arrays), trivium.compile(module)(*arrays)
    assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.parametrize("kind", [*BYTES, *SMALLER, *WIDER])
@pytest.mark.parametrize("direction", ["LT", "EQ"])
def test_comparisons(kind: str, direction: str) -> None:
    listed = numbers(kind)
    count = len(listed) ** 2
    pairs = np.repeat(listed, len(listed)), np.tile(listed, len(listed))
    check(
        f"""func.func @main(%a: tensor<{count}x{kind}>, %b: tensor<{count}x{kind}>) -> tensor<{count}xi1> {{
          %r = stablehlo.compare {direction}, %a, %b, TOTALORDER
            : (tensor<{count}x{kind}>, tensor<{count}x{kind}>) -> tensor<{count}xi1>
          return %r : tensor<{count}xi1>
        }}""",
        *pairs,
    )


@pytest.mark.parametrize("kind", [*BYTES, "f16", "bf16", "f32"])
def test_sorts(kind: str) -> None:
    listed = np.random.default_rng(0).permutation(np.repeat(numbers(kind), 3))
    count = len(listed)
    check(
        f"""func.func @main(%x: tensor<{count}x{kind}>) -> tensor<{count}x{kind}> {{
          %y = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
          ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):
            %r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
            stablehlo.return %r : tensor<i1>
          }}) : (tensor<{count}x{kind}>) -> tensor<{count}x{kind}>
          return %y : tensor<{count}x{kind}>
        }}""",
        listed,
    )
