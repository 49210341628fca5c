"""The meaning of custom calls, JAX's and our own, for ops that StableHLO lacks: an assertion about shapes, and ops
whose attributes are operands because they are computed from symbolic extents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trivium.ir.core import Block
from trivium.ir.custom_calls import register_custom_call
from trivium.ir.declare import Op
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import Module, resolve
from trivium.ir.interpreter import Interpreter, RegionCallable
from trivium.ir.ops.chlo import Acos, Acosh, Asin, Asinh, Atanh, ChloTan, Cosh, Erf, Sinh, TopK
from trivium.ir.ops.control import CustomCall
from trivium.ir.ops.linalg import Fft, FftType
from trivium.ir.ops.random import RngAlgorithm, RngBitGenerator
from trivium.ir.ops.reduction import ReduceWindow
from trivium.ir.types import Type, tensor

RANDOM_BITS = "stablehlo.dynamic_rng_bit_generator"
"""The target that draws random bits in a shape that is an operand."""

FOURIER = "trivium.dynamic_fft"
"""The target that transforms the last dimension, in a direction that is an attribute. The length is an operand."""

XLA_TOP_K = "mhlo.topk"
"""The target by which older versions of XLA's dialects write `chlo.top_k`."""

XLA_FUNCTIONS: Mapping[str, type[Op]] = {
    f"mhlo.{cls.NAME.removeprefix('chlo.')}": cls for cls in (Acos, Acosh, Asin, Asinh, Atanh, Cosh, Erf, Sinh, ChloTan)
}
"""The elementwise functions that XLA's own dialect has, by the targets by which its older versions write them."""

_PLACE = re.compile(r"\{\{|\{(\d{1,9})[^{}]*\}")


def _shape_assertion(op: CustomCall, holds: np.ndarray, *values: np.ndarray) -> tuple[()]:
    """Raises the call's error message unless `holds`; the message has placeholders such as `{0}` for the values."""
    if not holds:
        message = str(op.extra.get("error_message", "a shape assertion does not hold"))
        raise ExecutionError(_PLACE.sub(lambda match: _filled(match, values), message))
    return ()


def _filled(place: re.Match[str], values: tuple[np.ndarray, ...]) -> str:
    if place[1] is None:
        return "{"
    return str(values[int(place[1])]) if int(place[1]) < len(values) else place[0]


def _dynamic_top_k(op: CustomCall, operand: np.ndarray, k: np.ndarray) -> Sequence[np.ndarray]:
    return _run(TopK, op, [operand], op.result_types, k=int(k))


def largest_of(op: Any) -> int:
    """Returns how many of the largest elements a call of `mhlo.topk` asks for."""
    attributes = op.extra.get("mhlo.attributes", {})
    if "k" not in attributes or attributes.get("largest", True) is not True:
        raise Error(f"custom_call @{XLA_TOP_K} has the attributes {attributes}, expected k, and largest to be true")
    return attributes["k"].value


def _xla_function(op: CustomCall, operand: np.ndarray) -> Sequence[np.ndarray]:
    return _run(XLA_FUNCTIONS[op.call_target_name], op, [operand], op.result_types)


def _xla_top_k(op: Any, operand: np.ndarray) -> Any:
    return _run(TopK, op, [operand], op.result_types, k=largest_of(op))


def _approximate_top_k(op: Any, operand: np.ndarray, iota: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the exact top k, a valid approximation. `k` is an attribute, or else the operand after the two inits."""
    config = op.backend_config if op.backend_config is not None else op.extra.get("mhlo.backend_config", {})
    axis = config["reduction_dim"].value
    count = config["top_k"].value if "top_k" in config else int(others[2])
    count = op.results[0].type.shape[axis] or count  # more than k results without `aggregate_to_topk`
    order = _called(op)
    init, place = np.asarray(others[0]), np.asarray(others[1])
    ascending = bool(order(np.asarray(0, init.dtype), np.asarray(1, init.dtype), place, place)[0])
    keys = np.moveaxis(operand, axis, -1)
    keys = keys if ascending else keys[..., ::-1]
    chosen = np.argsort(keys, axis=-1, kind="stable")
    chosen = chosen if ascending else operand.shape[axis] - 1 - chosen[..., ::-1]
    chosen = np.moveaxis(chosen[..., :count], -1, axis)
    return np.take_along_axis(operand, chosen, axis), np.take_along_axis(iota, chosen, axis)


def _dynamic_rng_bit_generator(op: CustomCall, state: np.ndarray, shape: np.ndarray) -> Sequence[np.ndarray]:
    algorithm = op.extra.get("rng_algorithm", RngAlgorithm.DEFAULT)
    output = tensor(*map(int, shape), of=op.results[1].type.element_type)
    return _run(RngBitGenerator, op, [state], [op.results[0].type, output], rng_algorithm=algorithm)


def transform_of(op: Any) -> FftType:
    """Returns the direction of a call of `FOURIER`."""
    if not isinstance(kind := op.extra.get("fft_type"), FftType):
        raise Error(f"custom_call @{FOURIER} has no fft_type, expected one of stablehlo.fft")
    return kind


def _dynamic_fft(op: CustomCall, operand: np.ndarray, length: np.ndarray) -> Sequence[np.ndarray]:
    return _run(Fft, op, [operand], op.result_types, fft_type=transform_of(op), fft_length=(int(length),))


def _dynamic_reduce_window(op: CustomCall, *operands: np.ndarray) -> Sequence[np.ndarray]:
    """The operands are the inputs, their inits, and five lists: window dimensions, strides, base dilations, window
    dilations and padding."""
    *arrays, dimensions, strides, base, window, padding = operands
    return _run(
        ReduceWindow,
        op,
        arrays,
        op.result_types,
        [_called(op)],
        window_dimensions=tuple(map(int, dimensions)),
        window_strides=tuple(map(int, strides)),
        base_dilations=tuple(map(int, base)),
        window_dilations=tuple(map(int, window)),
        padding=tuple((int(low), int(high)) for low, high in np.reshape(padding, (-1, 2))),
    )


def _run(
    kind: type[Op],
    op: CustomCall,
    arrays: Sequence[np.ndarray],
    types: Sequence[Type],
    regions: Sequence[RegionCallable] = (),
    **attributes: object,
) -> Sequence[np.ndarray]:
    """Evaluates an op of class `kind` on the first operands of the custom call."""
    stated = kind.create(Block(op.operand_types[: len(arrays)]).arguments, types, attributes)
    return kind.EVALUATE(stated, arrays, regions, None)


def _called(op: CustomCall) -> RegionCallable:
    """Returns the first function that the custom call names as a callable, in the form that ops get their regions."""
    function = resolve(op, op.called_computations[0])
    module = function.parent_op
    assert isinstance(module, Module)
    return Interpreter(module).callable(function.body)


register_custom_call("shape_assertion", evaluate=_shape_assertion, infer=lambda op: (), effects=True)
for _name, _evaluate in (
    ("stablehlo.dynamic_top_k", _dynamic_top_k),
    (RANDOM_BITS, _dynamic_rng_bit_generator),
    (FOURIER, _dynamic_fft),
    ("stablehlo.dynamic_reduce_window", _dynamic_reduce_window),
    ("stablehlo.dynamic_approx_top_k", _approximate_top_k),
    ("ApproxTopK", _approximate_top_k),
    (XLA_TOP_K, _xla_top_k),
    *((target, _xla_function) for target in XLA_FUNCTIONS),
):
    register_custom_call(_name, evaluate=_evaluate)
