"""The table of decompositions. Each is a function whose parameters name the fields of the op that it needs, as those of
`evaluate` do. It receives `Tensor`s for operands, Python values for attributes, types for results, and `op` and
`scope`.

    @decomposition(Sinh, precision=F32)
    def sinh(operand): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.declare import EXPRESSED, Op, Role
from trivium.ir.decompositions.tensors import Scope, Tensor
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.ops import Convert, UniformDequantize, UniformQuantize
from trivium.ir.types import ComplexType, FloatType, QuantizedType, Type, expressed

Decomposition = Callable[[Op, Builder], tuple[Value, ...]]

DECOMPOSITIONS: dict[type[Op], Decomposition] = {}
"""How each op is written with other ops. A function inserts these, and returns the values of the results."""


def decompose(op: Op, builder: Builder) -> tuple[Value, ...]:
    """Inserts ops that compute the same as `op`, and returns the values of its results. Raises `UnsupportedOpError` if
    StableHLO has no ops for it."""
    return DECOMPOSITIONS[type(op)](op, builder)


def decomposition(*kinds: type[Op], precision: FloatType | None = None) -> Callable[[Callable], Callable]:
    """Registers a decomposition. With a `precision`, narrower floats are computed in that type, and rounded once."""

    def register(function: Callable) -> Callable:
        def run(op: Op, builder: Builder) -> tuple[Value, ...]:
            scope = Scope(builder)
            found = function(**{name: _given(op, name, scope, precision) for name in names})
            results = found if isinstance(found, tuple) else (found,)
            return tuple(_as_result(*pair) for pair in zip(results, op.result_types, strict=True))

        names = list(inspect.signature(function).parameters)
        for kind in kinds:
            if kind in DECOMPOSITIONS:
                raise Error(f"{kind.NAME} has two decompositions")
            DECOMPOSITIONS[kind] = run
        return function

    return register


def unsupported(op: Op, reason: str) -> UnsupportedOpError:
    """Returns the error for an op that cannot be decomposed."""
    missing = Unsupported(op.NAME, first=op.location.describe(), reason=reason)
    return UnsupportedOpError("the program has ops that cannot be written with StableHLO's own", [missing])


def _given(op: Op, name: str, scope: Scope, precision: FloatType | None) -> Any:
    if name in ("op", "scope"):
        return op if name == "op" else scope
    field = next(field for field in op.FIELDS if field.name == name)
    value = getattr(op, name)
    if field.role is Role.OPERAND:
        given = [_as_operand(op, Tensor(item, scope), precision) for item in (value if field.arity else (value,))]
        return tuple(given) if field.arity else given[0]
    if field.role is Role.RESULT:
        kinds = [_computed(op, item.type) for item in (value if field.arity else (value,))]
        return tuple(kinds) if field.arity else kinds[0]
    return value


def _computed(op: Op, kind: Any) -> Any:
    """Returns the type that an op computes with for values of type `kind`."""
    return expressed(kind) if op.has_trait(EXPRESSED) else kind


def _as_operand(op: Op, tensor: Tensor, precision: FloatType | None) -> Tensor:
    """Dequantizes quantized elements, and converts narrow floats to the precision of the computation."""
    if _computed(op, tensor.type) is not tensor.type:
        tensor = tensor.of(UniformDequantize(tensor.value))
    kind: Type = tensor.element_type
    part = kind.element_type if isinstance(kind, ComplexType) else kind
    if precision is None or not isinstance(part, FloatType) or part.width >= precision.width:
        return tensor
    return tensor.to(ComplexType(precision) if isinstance(kind, ComplexType) else precision)


def _as_result(tensor: Tensor, kind: Any) -> Value:
    """Converts a tensor to the type of the op's result."""
    if tensor.type is kind:
        return tensor.value
    change = UniformQuantize if isinstance(kind.element_type, QuantizedType) else Convert
    return tensor.of(change(tensor.value, result=kind)).value
