"""Ops that the host computes, by their reference meaning: special functions and transforms that no kernel has, and
draws from hidden state. All of them are named here; everything else is compiled, or an error."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from trivium.compiler.lowering.complex import knows
from trivium.compiler.lowering.rules import is_elementwise, step
from trivium.compiler.lowering.scalars import dtype_of
from trivium.compiler.program import HostCall
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.declare import Op
from trivium.ir.types import ComplexType, TensorType, is_boolean, is_complex

if TYPE_CHECKING:
    from trivium.compiler.compile import Lowering

CONTEXT = SimpleNamespace(random=np.random.default_rng())
"""What `evaluate` of a drawing op draws from."""


def on_host(op: Operation) -> bool:
    """Whether an op that has an element rule is computed on the host for these types: functions of complex numbers
    beyond `complex`, the neighbours of floats narrower than 32 bits, and bits that are booleans, or parts of complex
    numbers."""
    if isinstance(op, ops.BitcastConvert):
        kinds = [value.type.element_type for value in (op.operand, op.result)]
        return kinds[0] is not kinds[1] and (any(map(is_boolean, kinds)) or all(map(is_complex, kinds)))
    if not is_elementwise(op):
        return False
    kinds = [value.type.element_type for value in op.operands]
    if isinstance(op, ops.NextAfter):
        return dtype_of(kinds[0]) not in ("f32", "f64")
    return any(isinstance(kind, ComplexType) for kind in kinds) and not knows(op)


@step(ops.BesselI1e, ops.Mulhi, ops.Polygamma, ops.Rng, ops.Zeta)
@step(ops.Cholesky, ops.Einsum, ops.Fft, ops.RaggedDot, ops.TriangularSolve, ops.UnaryEinsum)
def on_the_host(lowering: Lowering, op: Op) -> None:
    results = [lowering.temporary(result) for result in op.results]
    for result, place in zip(op.results, results, strict=True):
        lowering.bind(result, place)
    arguments = tuple(map(lowering.place, op.operands))
    lowering.steps.append(HostCall(op.short_name(), host_function(op), arguments, tuple(results)))


def host_function(op: Op) -> Callable[..., None]:
    """`evaluate`, writing into the results' arrays."""
    return host_call(op, lambda *arrays: op.evaluate_with(arrays, (), CONTEXT))


def host_call(op: Op, function: Callable[..., object]) -> Callable[..., None]:
    """A function of arrays as a call that writes into the results' arrays."""

    def call(*arrays: np.ndarray) -> None:
        count = len(op.operands)
        arguments = [as_numpy(array, value.type) for array, value in zip(arrays[:count], op.operands, strict=True)]
        computed = function(*arguments)
        computed = computed if isinstance(computed, tuple | list) else (computed,)
        for array, result, value in zip(arrays[count:], computed, op.results, strict=True):
            as_numpy(array, value.type)[...] = result

    return call


def as_numpy(array: np.ndarray, kind: TensorType) -> np.ndarray:
    """The array over a buffer, as NumPy has the type: complex numbers are pairs in buffers, and a value that is another
    one reshaped has that one's buffer."""
    return (array.view(kind.dtype) if is_complex(kind.element_type) else array).reshape(kind.static_shape)
