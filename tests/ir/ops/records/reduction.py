"""Reductions, windows and sorts. Values are small whole numbers where an oracle adds in another order: their sums are
exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Lax, Record, body
from trivium.ir.builder import region
from trivium.ir.ops import (
    Add,
    And,
    Compare,
    ComparisonDirection,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reduce,
    ReduceWindow,
    Select,
    SelectAndScatter,
    Sort,
    While,
)
from trivium.ir.types import F32, I1, I32, element_type_of, tensor

RNG = np.random.default_rng(7)


class LaxCall(Lax):
    """Returns an oracle that evaluates an expression in `jax.lax`: a function of the module and the arrays."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__("call")
        self.function = function

    def __call__(self, *arrays: np.ndarray) -> Any:
        import jax

        with jax.enable_x64(True):
            outcome = self.function(jax.lax, *arrays)
            return tuple(map(np.asarray, outcome)) if isinstance(outcome, tuple | list) else np.asarray(outcome)


def whole(*shape: int, dtype: Any = np.float32, low: int = -9, high: int = 10) -> np.ndarray:
    """Returns random whole numbers."""
    return RNG.integers(low, high, shape).astype(dtype)


def scalar(value: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


# Reduce


def _reduce(op: Any, array: np.ndarray, init: Any, dimensions: tuple[int, ...], oracle: Callable[..., Any]) -> Record:
    return Record(
        Reduce,
        ((array,), (scalar(init, array.dtype),)),
        {"dimensions": dimensions, "body": body(op, *[element_type_of(array.dtype)] * 2)},
        oracle=oracle,
    )


def _folded(name: str, axis: tuple[int, ...]) -> Callable[..., np.ndarray]:
    function = getattr(np, name)
    return lambda array, init: function(array, axis, initial=init[()]).astype(array.dtype)


def _largest_and_place() -> Any:
    """Returns the (value, index) pair of the larger value; of equal values, the smaller index."""

    def choose(builder, value, place, other, other_place):
        greater = builder.add(Compare(value, other, comparison_direction=ComparisonDirection.GT))
        equal = builder.add(Compare(value, other, comparison_direction=ComparisonDirection.EQ))
        before = builder.add(Compare(place, other_place, comparison_direction=ComparisonDirection.LT))
        keep = builder.add(Or(greater, builder.add(And(equal, before))))
        return builder.add(Select(keep, value, other)), builder.add(Select(keep, place, other_place))

    kinds = [tensor(of=F32), tensor(of=I32)]
    return region(kinds * 2, choose)


def _add_in_a_loop() -> Any:
    """Returns a body that is not elementwise: it adds in a loop of one iteration."""

    def loop(builder, lhs, rhs):
        kinds = [tensor(of=F32), tensor(of=F32), tensor(of=I1)]
        going = builder.add(Compare(lhs, lhs, comparison_direction=ComparisonDirection.EQ))

        def turn(inner, one, other, flag):
            stop = inner.add(Compare(one, one, comparison_direction=ComparisonDirection.NE))
            return inner.add(Add(one, other)), other, stop

        state = While([lhs, rhs, going], region(kinds, lambda inner, *state: state[2]), region(kinds, turn))
        return builder.add(state)[0]

    return region([tensor(of=F32)] * 2, loop)


_REDUCTIONS = [
    _reduce(Add, whole(3, 4, 5), 2, (0, 2), _folded("sum", (0, 2))),
    _reduce(Add, whole(7), 0, (0,), _folded("sum", (0,))),
    _reduce(Add, whole(3, 4), 1, (), lambda array, init: array + init),
    _reduce(Add, whole(3, 0, 2), 5, (1,), _folded("sum", (1,))),
    _reduce(Add, whole(0, 3), 5, (1,), _folded("sum", (1,))),
    _reduce(Add, whole(5, 33, dtype=np.int8, low=-128, high=128), 3, (1,), _folded("sum", (1,))),
    _reduce(Multiply, whole(2, 6, dtype=np.float64), 1, (1,), _folded("prod", (1,))),
    _reduce(Maximum, whole(4, 9, dtype=ml_dtypes.bfloat16), -np.inf, (0,), lambda array, init: array.max(0)),
    _reduce(Minimum, whole(4, 9, dtype=np.float16), np.inf, (1, 0), lambda array, init: array.min()),
    _reduce(And, RNG.random((6, 5)) < 0.8, True, (0,), lambda array, init: array.all(0)),
    _reduce(Or, RNG.random((6, 5)) < 0.2, False, (1,), lambda array, init: array.any(1)),
    Record(
        Reduce,
        ((whole(4, 3, dtype=np.complex64),), (scalar(1j, np.complex64),)),
        {"dimensions": (0,), "body": body(Add, *[element_type_of(np.complex64)] * 2)},
        oracle=lambda array, init: array.sum(0) + init,
    ),
    # The body may accumulate in a wider type.
    Record(
        Reduce,
        ((whole(3, 100, dtype=np.int8, low=-128, high=128),), (scalar(0, np.int8),)),
        {"dimensions": (1,), "body": body(Add, I32, I32)},
        oracle=lambda array, init: array.sum(1, dtype=np.int32),
    ),
    # Several inputs are reduced together.
    Record(
        Reduce,
        (
            (whole(4, 9), np.tile(np.arange(9, dtype=np.int32), (4, 1))),
            (scalar(-np.inf), scalar(np.iinfo(np.int32).max, np.int32)),
        ),
        {"dimensions": (1,), "body": _largest_and_place},
        oracle=lambda values, places, *_: (values.max(1), values.argmax(1).astype(np.int32)),
    ),
    Record(
        Reduce,
        ((whole(3, 5),), (scalar(0),)),
        {"dimensions": (1,), "body": _add_in_a_loop},
        oracle=lambda array, init: array.sum(1),
    ),
]

# Windows


def _window(op: Any, lax_op: str, array: np.ndarray, init: Any, **window: Any) -> Record:
    attributes = {"window_dimensions": window["window_dimensions"], **window}
    names = {"window_strides": None, "padding": "VALID", "base_dilations": None, "window_dilations": None}

    def oracle(lax, array, init):
        sizes = attributes["window_dimensions"]
        ones = (1,) * array.ndim
        strides, padding, base, apart = (attributes.get(name, other) for name, other in names.items())
        return lax.reduce_window(array, init, getattr(lax, lax_op), sizes, strides or ones, padding, base, apart)

    kinds = [element_type_of(array.dtype)] * 2
    operands = ((array,), (scalar(init, array.dtype),))
    return Record(ReduceWindow, operands, {**attributes, "body": body(op, *kinds)}, oracle=LaxCall(oracle))


_WINDOWS = [
    _window(Add, "add", whole(7, 6), 0, window_dimensions=(3, 2)),
    _window(
        Maximum,
        "max",
        whole(2, 9, 8, 3),
        -np.inf,
        window_dimensions=(1, 3, 3, 1),
        window_strides=(1, 2, 2, 1),
        padding=((0, 0), (1, 1), (0, 1), (0, 0)),
    ),
    _window(
        Add,
        "add",
        whole(5, 8),
        0,
        window_dimensions=(3, 2),
        window_strides=(1, 2),
        padding=((2, 3), (-1, 4)),
        base_dilations=(2, 3),
        window_dilations=(2, 2),
    ),
    _window(Add, "add", whole(6, dtype=np.int32), 0, window_dimensions=(6,), padding=((5, 0),)),
    _window(Minimum, "min", whole(4, dtype=np.float64), np.inf, window_dimensions=(5,)),
    # Two inputs, whose init values are included once for each padding element, and once more.
    Record(
        ReduceWindow,
        ((whole(4), whole(4)), (scalar(10), scalar(1))),
        {
            "window_dimensions": (2,),
            "padding": ((1, 0),),
            "body": lambda: region(
                [tensor(of=F32)] * 4, lambda builder, a, b, c, d: (builder.add(Add(a, c)), builder.add(Multiply(b, d)))
            ),
        },
        oracle=lambda one, two, *_: (
            10 + np.append(np.float32(10), one[:-1]) + one,
            np.append(np.float32(1), two[:-1]) * two,
        ),
    ),
    _window(Maximum, "max", whole(7, 6).astype(ml_dtypes.float8_e5m2), -np.inf, window_dimensions=(3, 2)),
]


def _pooling_gradient(array: np.ndarray, window: dict[str, Any], counts: tuple[int, ...]) -> Record:
    def oracle(lax, operand, source, init):
        import jax

        def pool(x):
            sizes, strides, padding = (window[name] for name in ("window_dimensions", "window_strides", "padding"))
            return lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, sizes, strides, padding)

        return jax.vjp(pool, operand)[1](source)[0]

    element = element_type_of(array.dtype)
    attributes = {
        **window,
        "select": lambda: _comparison(element, ComparisonDirection.GE),
        "scatter": body(Add, element, element),
    }
    operands = (array, whole(*counts, dtype=array.dtype), scalar(0, array.dtype))
    return Record(SelectAndScatter, operands, attributes, oracle=LaxCall(oracle))


def _comparison(element: Any, direction: ComparisonDirection, unused: tuple[Any, ...] = ()) -> Any:
    """Returns a comparator of the first two arguments; `unused` are the types of the others."""
    kinds = [tensor(of=kind) for kind in (element, element, *unused)]
    return region(kinds, lambda builder, lhs, rhs, *_: builder.add(Compare(lhs, rhs, comparison_direction=direction)))


_SELECTIONS = [
    _pooling_gradient(
        whole(2, 9, 8, 3),
        {
            "window_dimensions": (1, 3, 3, 1),
            "window_strides": (1, 2, 2, 1),
            "padding": ((0, 0), (1, 1), (0, 1), (0, 0)),
        },
        (2, 5, 4, 3),
    ),
    _pooling_gradient(
        whole(6, 6, dtype=np.float64),
        {"window_dimensions": (2, 2), "window_strides": (2, 2), "padding": ((0, 0), (0, 0))},
        (3, 3),
    ),
    # The specification's own example.
    Record(
        SelectAndScatter,
        (
            np.array([[1, 5], [2, 5], [3, 6], [4, 4]]),
            np.array([[5, 6], [7, 8]]),
            scalar(0, np.int64),
        ),
        {
            "window_dimensions": (3, 1),
            "window_strides": (2, 1),
            "padding": ((0, 1), (0, 0)),
            "select": lambda: _comparison(element_type_of(np.int64), ComparisonDirection.GE),
            "scatter": body(Add, *[element_type_of(np.int64)] * 2),
        },
        oracle=lambda *_: np.array([[0, 0], [0, 0], [5, 14], [7, 0]]),
    ),
]

# Sort


def _sort(array: np.ndarray, dimension: int, direction: ComparisonDirection = ComparisonDirection.LT) -> Record:
    def oracle(array):
        ordered = np.sort(array, dimension, kind="stable")
        return ordered if direction is ComparisonDirection.LT else np.flip(ordered, dimension)

    comparator = lambda: _comparison(element_type_of(array.dtype), direction)  # noqa: E731
    attributes = {"dimension": dimension, "is_stable": True, "comparator": comparator}
    return Record(Sort, ((array,),), attributes, oracle=oracle)


def _sort_in_a_loop() -> Any:
    """Returns a comparator that is not elementwise: it has a loop of no iterations."""

    def compare(builder, lhs, rhs):
        never = builder.add(Compare(lhs, lhs, comparison_direction=ComparisonDirection.NE))
        kinds = [tensor(of=I1), tensor(of=F32)]
        loop = While(
            [never, lhs], region(kinds, lambda inner, flag, _: flag), region(kinds, lambda inner, *state: state)
        )
        lhs = builder.add(loop)[1]
        return builder.add(Compare(lhs, rhs, comparison_direction=ComparisonDirection.LT))

    return region([tensor(of=F32)] * 2, compare)


_ROWS = np.tile(np.arange(33, dtype=np.int32), (4, 1))
_SORTS = [
    _sort(whole(50), 0),
    _sort(whole(4, 33), -1),
    _sort(whole(5, 4, 3, dtype=np.int32), 1, ComparisonDirection.GT),
    _sort(whole(5, 17, dtype=np.uint8, low=0, high=256), 0),
    _sort(whole(1, 1), 1),
    _sort(whole(3, 0), 1),
    _sort(whole(0, 5), 1),
    # A key, and values that move with it. Equal keys keep their order.
    Record(
        Sort,
        ((whole(4, 33, low=0, high=5), _ROWS),),
        {
            "dimension": 1,
            "is_stable": True,
            "comparator": lambda: _comparison(F32, ComparisonDirection.LT, (I32, I32)),
        },
        oracle=lambda keys, rows: (
            np.sort(keys, 1),
            np.argsort(keys, 1, kind="stable").astype(np.int32),
        ),
    ),
    # The comparator defines no order, so elements may end up anywhere, but all of them are still there.
    Record(
        Sort,
        ((np.full(9, np.nan, np.float32),),),
        {"dimension": 0, "comparator": lambda: _comparison(F32, ComparisonDirection.NE)},
        oracle=lambda array: array,
    ),
    Record(
        Sort,
        ((whole(9),),),
        {"dimension": 0, "comparator": _sort_in_a_loop},
        oracle=lambda array: np.sort(array),
    ),
]

RECORDS = [*_REDUCTIONS, *_WINDOWS, *_SELECTIONS, *_SORTS]
