"""The largest elements of rows of which few are needed, on devices that sort integers by vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import run
from tests.compiler.lowering.test_key_sort import VECTORS, needs_vectors
from tests.compiler.lowering.test_radix import numbers
from tests.compiler.lowering.test_selection import greatest
from tests.compiler.lowering.test_sorting import lowered, names
from trivium.compiler.interpreter import interpret
from trivium.compiler.lowering.candidates import BLOCK, MOST, ROOM, is_possible
from trivium.compiler.lowering.radix import COUNTS
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F32, I8, I16, I32, UI16, UI32, UI64, Type


def check(shape: tuple[int, ...], k: int, kind: Type, argument: np.ndarray) -> None:
    module = greatest(shape, k, kind)
    for result, wanted in zip(run(lowered(module, VECTORS), [argument]), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


@needs_vectors
@pytest.mark.parametrize("kind", [F32, BF16, I8, I16, I32, UI16], ids=str)
@pytest.mark.parametrize(
    ("extent", "k"),
    [(256, ROOM), (257, 1), (319, 5), (1000, 33), (8 * MOST, MOST), (70_000, 9), (ROOM * 8 + BLOCK - 1, ROOM)],
)
def test_every_type(kind: Type, extent: int, k: int) -> None:
    """In random order, in the one in which each element is a candidate, and in that in which none is."""
    argument = numbers((3, extent), kind)
    argument[1], argument[2] = np.sort(argument[1]), np.sort(argument[1])[::-1]
    check((3, extent), k, kind, argument)


@needs_vectors
def test_equal_ones_stay_in_order() -> None:
    few = np.random.default_rng(0).integers(0, 3, (4, 900)).astype(np.float32)
    few[1] = 0
    few[2, ::7] = np.nan
    few[3] = np.where(few[3] == 0, -0.0, np.where(few[3] == 1, 0.0, np.nan))
    check((4, 900), 40, F32, few)


def test_the_interpreter_selects_too() -> None:
    module, argument = greatest((1, 300), 4, I8), numbers((1, 300), I8)
    for result, wanted in zip(interpret(lowered(module, VECTORS), argument), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


@needs_vectors
def test_rows_that_do_not_fit_in_scratch() -> None:
    scarce = replace(VECTORS, fusion=replace(VECTORS.fusion, scratch_bytes=COUNTS))
    module, argument = greatest((2, 700), 7, F32), numbers((2, 700), F32)
    program = lowered(module, scarce)
    assert names(program) == ["top_k_0_begin", "top_k_0_select"]
    for result, wanted in zip(run(program, [argument]), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_keys_and_places_fit_into_positive_integers() -> None:
    assert is_possible(VECTORS, UI32, 1 << 31)
    assert not is_possible(VECTORS, UI64, 256)
    assert not is_possible(replace(VECTORS, sorts_keys=False), UI32, 256)
