"""Custom calls, mostly JAX's, whose last operands stand for attributes that follow from symbolic extents, or for the
shapes of results: once they are known, each is an op of StableHLO, or a call without them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivium.compiler.passes.patterns.matching import constant
from trivium.ir.core import Region, Value
from trivium.ir.custom_calls import states_shapes, with_known_results
from trivium.ir.custom_targets import FOURIER, RANDOM_BITS, transform_of
from trivium.ir.declare import Op
from trivium.ir.func import resolve
from trivium.ir.ops import CustomCall, Fft, ReduceWindow, Return, RngAlgorithm, RngBitGenerator, TopK


def shape_operands(op: CustomCall) -> list[Value]:
    """Returns the operands that represent attributes, or the shapes of results."""
    count, _ = _meaning(op)
    return list(op.operands[len(op.operands) - count :])


def static_call(op: CustomCall) -> Op | None:
    """Returns the op that the call stands for, if it is one of these calls and the attributes are known, else None."""
    count, build = _meaning(op)
    lists = [array for value in shape_operands(op) if (array := constant(value)) is not None]
    if build is None or len(lists) < count:
        return None
    return build(op, list(op.operands[: len(op.operands) - count]), *lists)


def _meaning(op: CustomCall) -> tuple[int, Callable[..., Op] | None]:
    """Returns the number of these operands, and what builds the op."""
    if states_shapes(op):
        return len(op.results), lambda op, operands, *shapes: with_known_results(op, operands, shapes)
    return _CALLS.get(op.call_target_name, (0, None))


def _top_k(op: CustomCall, operands: list[Value], k: np.ndarray) -> Op:
    return TopK(*operands, k=int(k))


def random_bits(op: CustomCall, operands: list[Value], shape: np.ndarray) -> Op:
    """Returns the draw of a call of `RANDOM_BITS`, in a shape."""
    state, output = op.result_types
    algorithm = op.extra.get("rng_algorithm", RngAlgorithm.DEFAULT)
    drawn = output.with_shape(shape.tolist())  # type: ignore[attr-defined]
    return RngBitGenerator(*operands, rng_algorithm=algorithm, output_state=state, output=drawn)


def _transform(op: CustomCall, operands: list[Value], length: np.ndarray) -> Op:
    return Fft(*operands, fft_type=transform_of(op), fft_length=(int(length),))


_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")


def _reduce_window(op: CustomCall, operands: list[Value], *lists: np.ndarray) -> Op:
    half = len(operands) // 2
    window = {name: array.tolist() for name, array in zip(_WINDOW, lists, strict=False)}
    padding = lists[-1].reshape(-1, 2).tolist()
    return ReduceWindow(operands[:half], operands[half:], **window, padding=padding, body=_called(op))


def _called(op: CustomCall) -> Region:
    """Returns the body of the first function that the call names as an op's region."""
    region = resolve(op, op.called_computations[0]).body.clone()
    end = region.terminator
    values = end.operands
    end.erase()
    region.block.append(Return(values))
    return region


_CALLS: dict[str, tuple[int, Callable[..., Op]]] = {
    "stablehlo.dynamic_reduce_window": (5, _reduce_window),
    RANDOM_BITS: (1, random_bits),
    FOURIER: (1, _transform),
    "stablehlo.dynamic_top_k": (1, _top_k),
}
