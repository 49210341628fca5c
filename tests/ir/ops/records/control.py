"""Loops, branches, barriers and custom calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ir.ops.records import Record
from trivium.ir.builder import Builder, region
from trivium.ir.core import Region
from trivium.ir.ops import (
    Add,
    Case,
    Compare,
    ComparisonDirection,
    Constant,
    CustomCall,
    If,
    Multiply,
    OptimizationBarrier,
    While,
)
from trivium.ir.types import F32, I32, tensor


def _constant(builder: Builder, value: Any) -> Any:
    return builder.add(Constant(value=np.asarray(value)))


def _always(*values: Any) -> Callable[[], Region]:
    """Returns a region without arguments that returns constants."""
    return lambda: region([], lambda builder: [_constant(builder, value) for value in values])


_STATE = [tensor(of=I32), tensor(2, of=F32)]


def _until(limit: int) -> Callable[[], Region]:
    def below(builder, count, _):
        return builder.add(
            Compare(count, _constant(builder, np.int32(limit)), comparison_direction=ComparisonDirection.LT)
        )

    return lambda: region(_STATE, below)


def _double() -> Region:
    def turn(builder, count, value):
        following = builder.add(Add(count, _constant(builder, np.int32(1))))
        return following, builder.add(Multiply(value, _constant(builder, np.float32([2, 3]))))

    return region(_STATE, turn)


def _loop(start: int, limit: int) -> Record:
    turns = max(0, limit - start)
    return Record(
        While,
        ((np.array(start, np.int32), np.array([1, 1], np.float32)),),
        {"cond": _until(limit), "body": _double},
        oracle=lambda count, _: (np.int32(count + turns), np.array([2**turns, 3**turns], np.float32)),
    )


def _branch(pred: bool) -> Record:
    one, other = np.array([1, 2]), np.array([3, 4])
    return Record(
        If,
        (np.array(pred),),
        {"true_branch": _always(one), "false_branch": _always(other)},
        oracle=lambda pred: one if pred else other,
    )


def _case(index: int, chosen: int) -> Record:
    values = [np.float32(5), np.float32(6), np.float32(7)]
    return Record(
        Case,
        (np.array(index, np.int32),),
        {"branches": _Branches(*map(_always, values))},
        oracle=lambda _: values[chosen],
    )


class _Branches:
    """Returns a list of regions, which are new at each use."""

    def __init__(self, *makers: Callable[[], Region]):
        self.makers = makers

    def __call__(self) -> list[Region]:
        return [make() for make in self.makers]


_ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)

RECORDS = [
    _loop(0, 5),
    _loop(7, 5),
    _branch(True),
    _branch(False),
    _case(0, 0),
    _case(1, 1),
    _case(2, 2),
    _case(3, 2),
    _case(-1, 2),
    Record(
        OptimizationBarrier,
        ((_ARRAY, np.array(1)),),
        oracle=lambda *arrays: arrays,
    ),
    Record(
        CustomCall,
        ((_ARRAY,),),
        {"call_target_name": "Sharding", "results": [tensor(2, 3)]},
        oracle=lambda array: array,
    ),
]
