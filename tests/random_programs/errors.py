"""Error bounds of single ops (`tracking`), by family. Ops without a rule here are probed: their operands are changed by
their errors, and the change of the results is multiplied by a safety factor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tests.random_programs.arrays import epsilon, grain, greatest, is_inexact, least, precision, wide
from tests.random_programs.tracked import Tracked, Unstable
from trivium.ir import ops
from trivium.ir.core import Operation, Region
from trivium.ir.declare import PURE, Op
from trivium.ir.interpreter import Interpreter

ULPS = 8
"""Units in the last place by which two implementations of a function may differ, if each may be off by 4."""

Results = Sequence[np.ndarray]
Rule = Callable[[Operation, Sequence[Tracked], Results], list[float]]
RULES: dict[type[Operation], Rule] = {}


def errors_of(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    """Returns the error of each result. `used` are the operands, then the values that the regions capture."""
    if any(value.error for value in used[len(op.operands) :]):
        raise Unstable("a region captures a value that is not exact")
    if not any(is_inexact(result.dtype) for result in results) and not any(value.error for value in used):
        return [0.0] * len(results)
    rule = RULES.get(type(op))
    return rule(op, used, results) if rule is not None else _probed(op, used, results)


def rule(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    def note(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return note


def _any(used: Sequence[Tracked]) -> float:
    return max((value.error for value in used), default=0.0)


def _rounding(result: np.ndarray) -> float:
    return epsilon(result.dtype) * greatest(result) if is_inexact(result.dtype) else 0.0


# Elements that are moved, selected, or rounded correctly


@rule(
    *(ops.Reshape, ops.BroadcastInDim, ops.Transpose, ops.Reverse, ops.Slice, ops.Concatenate, ops.Pad, ops.Gather),
    *(ops.DynamicSlice, ops.DynamicUpdateSlice, ops.Select, ops.Clamp, ops.Maximum, ops.Minimum, ops.Negate),
    *(ops.Real, ops.Imag, ops.Complex),
)
def _moved(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    return [_any(used)] * len(results)


@rule(ops.Constant, ops.Iota, ops.RngBitGenerator, ops.BitcastConvert)
def _exact(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    if _any(used):
        raise Unstable("bits of numbers that are not exact")
    return [0.0] * len(results)


@rule(ops.Abs)
def _abs(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    of_complex = used[0].array.dtype.kind == "c"
    return [2 * _any(used) + ULPS * _rounding(results[0])] if of_complex else [_any(used)]


@rule(ops.Add, ops.Subtract)
def _sum(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    error = sum(value.error for value in used)
    return [error + _rounding(results[0]) if error else 0.0]


@rule(ops.Multiply)
def _product(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    x, y = used
    exact = results[0].dtype.kind != "c" or _fits(results[0].dtype, 2 * _scaled(x.array) * _scaled(y.array))
    if not _any(used) and exact:
        return [0.0]
    return [2 * (x.greatest * y.error + y.greatest * x.error) + 8 * epsilon(results[0].dtype) * x.greatest * y.greatest]


@rule(ops.Divide)
def _quotient(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    x, y = used
    if not _any(used) and results[0].dtype.kind != "c":
        return [0.0]
    low = least(y.array) - y.error
    if low < 0.05:
        raise Unstable("division by numbers close to zero")
    return [2 * (x.error / low + x.greatest * y.error / low**2) + 8 * _rounding(results[0])]


@rule(
    *(ops.Remainder, ops.Sign, ops.Floor, ops.Ceil, ops.RoundNearestAfz, ops.RoundNearestEven, ops.IsFinite),
    *(ops.ReducePrecision, ops.Sqrt),
)
def _stepped(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    """Exact for exact numbers; for others, the adjacent step may be the correct one."""
    if not _any(used) and not (isinstance(op, ops.Sqrt | ops.Sign) and results[0].dtype.kind == "c"):
        return [0.0]
    if isinstance(op, ops.Sqrt):
        return _probed(op, used, results)
    raise Unstable("a step function of numbers that are not exact")


@rule(ops.Compare)
def _comparison(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    if _any(used):
        distances = np.abs(wide(used[0].array) - wide(used[1].array))
        if not (distances > 2 * sum(value.error for value in used)).all():
            raise Unstable("a comparison of numbers that are not exact")
    return [0.0]


@rule(ops.Convert)
def _converted(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    (x,) = used
    if x.error and not is_inexact(results[0].dtype):
        raise Unstable("an integer from numbers that are not exact")
    return [x.error + _rounding(results[0]) if x.error else 0.0]


# Sums


def _scaled(array: np.ndarray) -> float:
    """Returns the largest element, in units of the grid of which all are multiples."""
    unit = grain(array)
    return math.inf if unit == 0 else greatest(array) / unit if math.isfinite(unit) else 0.0


def _fits(dtype: np.dtype, number: float) -> bool:
    """Whether sums of integers up to `number` are exact."""
    return number <= 2.0 ** (precision(dtype) - 1)


def _sum_error(dtype: np.dtype, count: int, total: float) -> float:
    """Returns the largest difference by rounding between two sums of `count` terms whose magnitudes add up to
    `total`."""
    return min(2 * count, 8 + 4 * math.sqrt(count)) * epsilon(dtype) * total


@rule(ops.DotGeneral, ops.Convolution, ops.RaggedDot)
def _contraction(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    x, y, *_ = used
    (result,), count = results, _terms(op)
    if not is_inexact(result.dtype):
        return [0.0]
    held = np.dtype(np.float64 if result.dtype.itemsize * (1 + (result.dtype.kind != "c")) >= 16 else np.float32)
    if count * x.greatest * y.greatest > float(np.finfo(held).max):
        return [math.inf]  # the order of the terms decides whether a partial sum overflows
    # A product below the smallest number is rounded, unless it is fused with the following addition.
    smallest = float(np.finfo(held).smallest_subnormal)
    underflows = grain(x.array) * grain(y.array) < smallest
    if not _any(used) and not underflows and _fits(held, 2 * count * _scaled(x.array) * _scaled(y.array)):
        return [0.0]
    scale = x.greatest * y.greatest * 2
    error = 2 * count * (x.greatest * y.error + y.greatest * x.error) + underflows * count * smallest
    return [error + _sum_error(held, 2 * count, count * scale) + _rounding(result)]


@rule(ops.Fft)
def _transform(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    """Sums of products with numbers of magnitude 1, of as many numbers as are transformed together."""
    assert isinstance(op, ops.Fft)
    (x,), (result,), count = used, results, math.prod(op.fft_length)
    if not math.isfinite(x.greatest):
        raise Unstable("a transform of numbers that are not finite")
    held = np.dtype(np.float64 if np.finfo(result.dtype).bits == 64 else np.float32)
    # The factors that are zero, and their signs, depend on the algorithm: so do the signs of results that are zero.
    least_error = float(np.finfo(held).smallest_subnormal)
    return [2 * count * x.error + _sum_error(held, 2 * count, 2 * count * x.greatest) + _rounding(result) + least_error]


def _terms(op: Operation) -> int:
    """Returns the number of products that each element of a contraction sums."""
    if isinstance(op, ops.DotGeneral):
        return math.prod(op.lhs.type.shape[d] for d in op.dot_dimension_numbers.lhs_contracting_dimensions)
    if isinstance(op, ops.RaggedDot):
        return op.lhs.type.shape[op.ragged_dot_dimension_numbers.ragged]
    assert isinstance(op, ops.Convolution)
    shape, n = op.rhs.type.shape, op.dimension_numbers
    return math.prod(shape[d] for d in n.kernel_spatial_dimensions) * shape[n.kernel_input_feature_dimension]


@rule(ops.Reduce, ops.ReduceWindow)
def _fold(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    count = math.prod(op.window_dimensions) if isinstance(op, ops.ReduceWindow) else _folded(op)  # type: ignore[arg-type]
    return _combined(op.body, used, results, count + 1)  # type: ignore[attr-defined]


def _folded(op: ops.Reduce) -> int:
    return math.prod(op.inputs[0].type.shape[d] for d in op.dimensions)


@rule(ops.Scatter)
def _scatter(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    assert isinstance(op, ops.Scatter)
    return _combined(op.update_computation, used, results, 1 + op.scatter_indices.type.size)


@rule(ops.SelectAndScatter)
def _select_and_scatter(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    assert isinstance(op, ops.SelectAndScatter)
    if used[0].error:
        raise Unstable("a choice among numbers that are not exact")
    return _combined(op.scatter, used[1:], results, 1 + math.prod(op.window_dimensions or ()))


CHOICES = {"maximum", "minimum", "and", "or", "xor", "not", "convert", "constant"}


def _combined(body: Region, used: Sequence[Tracked], results: Results, count: int) -> list[float]:
    """Returns the errors of a region that combines at most `count` values."""
    kinds = {op.NAME.partition(".")[2] for op in body.block} - {"return"}
    kinds = kinds - {"reshape", "concatenate", "reduce", "if"} | ({"select"} if "if" in kinds else set())
    if kinds & {"compare", "select"} and _any(used):
        raise Unstable("a choice among numbers that are not exact")
    if kinds & {"compare", "select"} and any(_has_no_order(value.array) for value in used):
        raise Unstable("a choice that depends on the order of folding, which is free")
    if kinds <= CHOICES | {"compare", "select"}:
        return [_any(used)] * len(results)
    floats = [value for value in used if is_inexact(value.array.dtype)]
    inexact = [argument.type.dtype for argument in body.arguments if is_inexact(argument.type.dtype)]
    if not inexact:
        return [0.0] * len(results)
    most = max((value.greatest for value in floats), default=0.0)
    unit = min((grain(value.array) for value in floats), default=1.0)
    steps = math.inf if unit == 0 else most / unit
    if "multiply" in kinds:
        if (
            _any(used)
            or not kinds <= CHOICES | {"multiply"}
            or math.log2(max(1.0, steps)) * count > precision(inexact[0]) - 1
        ):
            raise Unstable("a product of many numbers that are not exact")
        return [0.0] * len(results)
    if not kinds <= CHOICES | {"add", "compare", "select"}:
        raise Unstable(f"a fold with {sorted(kinds)}")
    if not _any(used) and _fits(inexact[0], 2 * count * steps):
        return [0.0] * len(results)
    if kinds & {"compare", "select"}:
        raise Unstable("a choice among sums that are not exact")
    error = count * _any(used) + _sum_error(inexact[0], count, count * most)
    return [error + _rounding(result) for result in results]


def _has_no_order(array: np.ndarray) -> bool:
    """Whether comparisons fail to distinguish some elements: NaN is neither greater nor less, and zeros of both signs
    are equal."""
    if not is_inexact(array.dtype) or array.dtype.kind == "c":
        return False
    numbers = wide(array)
    zeros = np.signbit(numbers[numbers == 0])
    return bool(np.isnan(numbers).any() or (zeros.any() and not zeros.all()))


@rule(ops.Sort)
def _sort(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    assert isinstance(op, ops.Sort)
    for index, argument in enumerate(op.comparator.arguments):
        if argument.uses and used[index // 2].error:
            raise Unstable("an order of numbers that are not exact")
    return [value.error for value in used]


# Functions


@rule(ops.Map)
def _map(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    if _any(used):
        raise Unstable("a region of any ops, of numbers that are not exact")
    return [0.0]


def _probed(op: Operation, used: Sequence[Tracked], results: Results) -> list[float]:
    """Returns the changes of the results when the operands change by their errors, and by a few units in the last
    place."""
    assert isinstance(op, Op)
    if PURE not in op.TRAITS and op.regions:
        raise Unstable(f"no bound is known for {op.NAME}")
    if not all(np.isfinite(wide(value.array)).all() for value in used) or any(
        not np.isfinite(wide(result)).all() for result in results
    ):
        raise Unstable("a function that is not finite")
    rng, interpreter = np.random.default_rng(0), Interpreter()
    errors = [ULPS * _rounding(result) for result in results]
    for _ in range(3):
        moved = {value: _moved_array(rng, known) for value, known in zip(op.operands, used, strict=True)}
        for index, other in enumerate(interpreter.step(op, moved)):
            if not is_inexact(results[index].dtype):
                if not np.array_equal(results[index], other):
                    raise Unstable(f"{op.NAME} of numbers that are not exact")
                continue
            change = np.abs(wide(np.asarray(other)) - wide(results[index]))
            errors[index] += 2 * float(change.max(initial=0.0))
    return errors


def _moved_array(rng: np.random.Generator, value: Tracked) -> np.ndarray:
    array = value.array
    if not is_inexact(array.dtype):
        return array
    step = value.error + 2 * epsilon(array.dtype) * np.abs(wide(array))
    return (wide(array) + step * rng.choice([-1.0, 1.0], array.shape)).astype(array.dtype)
