"""Gathers at constant places: those that follow a rule vanish, others stay; both compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten
from trivium.compiler.passes.patterns.gathering import GATHERING
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.ops import GatherDimensionNumbers
from trivium.ir.types import I64, tensor, type_of

X = np.random.default_rng(0).permutation(5 * 6 * 7).astype(np.int32).reshape(5, 6, 7)

REGULAR: dict[str, list[int]] = {
    "all": [0, 1, 2, 3, 4],
    "some": [1, 2, 3],
    "one": [3],
    "every other": [0, 2, 4],
    "backwards": [4, 3, 2, 1, 0],
    "every other, backwards": [4, 2, 0],
    "twice each": [0, 0, 1, 1, 2, 2],
    "three times each, backwards": [3, 3, 3, 1, 1, 1],
    "beyond the first, clamped": [-1],
}

IRREGULAR: dict[str, list[int]] = {
    "in another order": [0, 2, 1],
    "not as often each": [0, 0, 1, 1, 2],
    "more often later": [0, 1, 1],
    "clamped, so that two are equal": [3, 4, 5],
    "the same again": [0, 1, 0, 1],
}


def spread(b: Builder, table: list[int], batch: int, rank: int, shape: list[int], dense: bool) -> Value:
    """Returns a table along one of the batch dimensions as a component of indices, with a last dimension of 1."""
    array = np.array(table).reshape([-1 if d == batch else 1 for d in range(rank)] + [1])
    if dense:
        return b.add(ops.Constant(np.broadcast_to(array, (*shape, 1)).copy()))
    line = b.add(ops.Constant(np.array(table)))
    whole = b.add(ops.BroadcastInDim(line, (batch,), result=tensor(*shape, of=I64)))
    return b.add(ops.Reshape(whole, result=tensor(*shape, 1, of=I64)))


def along(tables: dict[int, list[int]], order: list[int], offsets: tuple[int, ...], dense: bool) -> Module:
    """Returns the gather of X at `tables` of dimensions, along batch dimensions in `order`."""
    mapped = tuple(tables)
    shape = [0] * len(mapped)
    for d, place in zip(mapped, order, strict=True):
        shape[place] = len(tables[d])

    def body(b: Builder, x: Value) -> Value:
        pieces = [spread(b, tables[d], place, len(order), shape, dense) for d, place in zip(mapped, order, strict=True)]
        indices = b.add(ops.Concatenate(pieces, len(order)))
        numbers = GatherDimensionNumbers(offsets, tuple(sorted(mapped)), (), (), mapped, len(order))
        sizes = [1 if d in mapped else extent for d, extent in enumerate(X.shape)]
        return b.add(ops.Gather(x, indices, numbers, sizes))

    return program_of([type_of(X)], body)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("places", REGULAR)
def test_regular_places_are_no_gather(places: str, dense: bool) -> None:
    for dimension in range(3):
        for offsets in ((1, 2), (0, 2), (0, 1)):
            module = along({dimension: REGULAR[places]}, [0], offsets, dense)
            assert "gather" not in names(rewritten(module, GATHERING, [X]))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("second", ["every other", "twice each", "one", "backwards"])
@pytest.mark.parametrize("first", ["some", "twice each", "every other, backwards", "one"])
def test_rows_and_columns(first: str, second: str, dense: bool) -> None:
    for mapped, order, offset in (((0, 1), [0, 1], 2), ((2, 0), [0, 1], 0), ((1, 2), [1, 0], 1)):
        tables = dict(zip(mapped, (REGULAR[first], REGULAR[second]), strict=True))
        assert "gather" not in names(rewritten(along(tables, order, (offset,), dense), GATHERING, [X]))


PIECES: dict[str, tuple[list[int], int]] = {
    "reflected": ([3, 2, 1, *range(30), 28, 27], 3),
    "with edges repeated": ([0, 0, *range(30), 29, 29, 29], 3),
    "wrapped": ([28, 29, *range(30), 0, 1], 3),
    "every other, then the rest": ([*range(0, 30, 2), *range(1, 30, 2)], 2),
    "all, and one of them again": ([*range(30), 7], 2),
}


@pytest.mark.parametrize("case", PIECES)
def test_places_in_a_few_pieces_are_joined_slices(case: str) -> None:
    places, count = PIECES[case]
    table = np.arange(60, dtype=np.int32).reshape(2, 30)

    def body(b: Builder, x: Value) -> Value:
        numbers = GatherDimensionNumbers((0,), (1,), (), (), (1,), 1)
        return b.add(ops.Gather(x, b.add(ops.Constant(np.array(places)[:, None])), numbers, (2, 1)))

    found = names(rewritten(program_of([type_of(table)], body), GATHERING, [table]))
    assert "gather" not in found
    assert (found.count("concatenate"), found.count("slice")) == (1, count)


@pytest.mark.parametrize(
    ("places", "count"),
    [
        (np.arange(0, 120, 2, dtype=np.int8), 1),  # of which the extent is no number
        (np.array([*range(150, 251, 10), *range(4, 96, 10)], np.uint8), 2),  # steps that wrap are others
        (np.array([2**64 - 1], np.uint64), 1),
        (np.array([-(2**63)]), 1),
    ],
    ids=["i8", "ui8", "large", "small"],
)
def test_places_of_any_integer_type(places: np.ndarray, count: int) -> None:
    table = np.arange(600, dtype=np.int32).reshape(2, 300)

    def body(b: Builder, x: Value) -> Value:
        numbers = GatherDimensionNumbers((0,), (1,), (), (), (1,), 1)
        return b.add(ops.Gather(x, b.add(ops.Constant(places[:, None])), numbers, (2, 1)))

    found = names(rewritten(program_of([type_of(table)], body), GATHERING, [table]))
    assert ("gather" not in found, found.count("slice")) == (True, count)


@pytest.mark.parametrize("places", IRREGULAR)
def test_other_places_stay_a_gather(places: str) -> None:
    for dense in (False, True):
        module = along({0: IRREGULAR[places]}, [0], (1, 2), dense)
        assert names(rewritten(module, GATHERING, [X]))[-1] == "gather"


def of_indices(
    indices: Callable[[Builder], Value], mapped: tuple[int, ...], vector: int, offsets: tuple[int, ...]
) -> Module:
    def body(b: Builder, x: Value) -> Value:
        numbers = GatherDimensionNumbers(offsets, tuple(sorted(mapped)), (), (), mapped, vector)
        return b.add(ops.Gather(x, indices(b), numbers, [1 if d in mapped else e for d, e in enumerate(X.shape)]))

    return program_of([type_of(X)], body)


def numbers(*elements: object) -> Callable[[Builder], Value]:
    return lambda b: b.add(ops.Constant(np.array(elements)))


OTHERS: dict[str, Module] = {
    "one element of each row": of_indices(numbers([0, 0], [1, 1], [2, 2]), (0, 1), 1, (1,)),
    "the same rows again and again": of_indices(numbers([0, 1, 2], [0, 1, 2]), (0,), 2, (2, 3)),
    "places that depend on both": of_indices(numbers([0, 1], [1, 2]), (0,), 2, (2, 3)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_places_along_several_dimensions_stay_a_gather(case: str) -> None:
    assert names(rewritten(OTHERS[case], GATHERING, [X])) == ["gather"]


def test_a_single_index_and_batch_dimensions_of_one_element() -> None:
    for module in (
        of_indices(numbers(2, 3), (0, 2), 0, (0,)),
        of_indices(numbers([[2, 3]]), (0, 2), 2, (2,)),
        of_indices(numbers([[2], [4]]), (1,), 2, (0, 3)),
    ):
        assert "gather" not in names(rewritten(module, GATHERING, [X]))
