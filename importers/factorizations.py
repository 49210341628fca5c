"""Calls of LAPACK's routines, for the importers whose frameworks factor matrices on a CPU in the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.importers.emit import Emitter
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.lapack import call_attributes
from trivium.ir.types import TensorType


def lapack(emit: Emitter, routine: str, *operands: Value, **numbers: int) -> Sequence[Value]:
    """Returns the results of a LAPACK routine."""
    attributes = call_attributes(routine, [operand.type for operand in operands], numbers)
    return emit.add(ops.CustomCall(list(operands), **attributes))


def identities(emit: Emitter, kind: TensorType) -> Value:
    """Returns the vectors of a matrix without elements, an identity, or its values, of which there are none."""
    if not kind.size:
        return emit.full(kind.static_shape, 0, kind.element_type)
    size = kind.static_shape[-1]
    identity = emit.elements(np.eye(kind.static_shape[-2], size), kind.element_type)
    return emit.broadcast_in_dim(identity, kind.static_shape, [kind.rank - 2, kind.rank - 1])
