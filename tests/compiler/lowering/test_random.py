"""Generators of random bits, compared with their meaning in the language, for every length and type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function

STATES = {"THREE_FRY": [2], "PHILOX": [2, 3]}


def program(algorithm: str, words: int, shape: str, kind: str) -> str:
    state, result = f"tensor<{words}xui64>", f"tensor<{shape}{kind}>"
    return function(
        f"%s: {state}",
        f"{state}, {result}",
        f"%0, %1 = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({state}) -> ({state}, {result})",
        f"return %0, %1 : {state}, {result}",
    )


def state(words: int) -> np.ndarray:
    return np.array([0x0123456789ABCDEF, 0xFFFFFFFFFFFFFFFE, 7][:words], np.uint64)


@pytest.mark.parametrize(("algorithm", "words"), [(name, words) for name in STATES for words in STATES[name]])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 13])
def test_lengths(algorithm: str, words: int, count: int) -> None:
    expect_same(program(algorithm, words, f"{count}x", "ui32"), state(words))


@pytest.mark.parametrize("algorithm", STATES)
@pytest.mark.parametrize("kind", ["ui8", "i16", "ui64", "f32", "f64"])
def test_types(algorithm: str, kind: str) -> None:
    expect_same(program(algorithm, 2, "3x5x", kind), state(2))


@pytest.mark.parametrize("algorithm", STATES)
def test_a_scalar(algorithm: str) -> None:
    expect_same(program(algorithm, 2, "", "ui32"), state(2))


def test_the_default_is_one_of_them() -> None:
    expect_same(program("DEFAULT", 2, "6x", "ui32"), state(2))
