"""Custom calls of JAX for ops whose attributes follow from symbolic extents: once the last operands are known, each is
an op of StableHLO."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivium.compiler.passes.patterns.matching import constant
from trivium.ir.core import Region, Value
from trivium.ir.declare import Op
from trivium.ir.func import resolve
from trivium.ir.ops import CustomCall, ReduceWindow, Return, RngAlgorithm, RngBitGenerator, TopK


def shape_operands(op: CustomCall) -> list[Value]:
    """Returns the operands that represent attributes."""
    count, _ = _CALLS.get(op.call_target_name, (0, None))
    return list(op.operands[len(op.operands) - count :])


def static_call(op: CustomCall) -> Op | None:
    """Returns the op that the call stands for, if it is one of these calls and the attributes are known, else None."""
    count, build = _CALLS.get(op.call_target_name, (0, None))
    lists = [array for value in shape_operands(op) if (array := constant(value)) is not None]
    if build is None or len(lists) < count:
        return None
    return build(op, list(op.operands[: len(op.operands) - count]), *lists)


def _top_k(op: CustomCall, operands: list[Value], k: np.ndarray) -> Op:
    return TopK(*operands, k=int(k))


def _random_bits(op: CustomCall, operands: list[Value], shape: np.ndarray) -> Op:
    state, output = op.result_types
    algorithm = op.extra.get("rng_algorithm", RngAlgorithm.DEFAULT)
    drawn = output.with_shape(shape.tolist())  # type: ignore[attr-defined]
    return RngBitGenerator(*operands, rng_algorithm=algorithm, output_state=state, output=drawn)


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
    "stablehlo.dynamic_rng_bit_generator": (1, _random_bits),
    "stablehlo.dynamic_top_k": (1, _top_k),
}
