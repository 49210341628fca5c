"""All values of a program, as the interpreter computes them, and random ones for its arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.interpreter import Interpreter
from trivium.ir.types import TensorType


def evaluated(module: Module, arguments: Sequence[np.ndarray]) -> dict[Value, np.ndarray]:
    """Returns the arguments of a program without calls, and the results of all of its ops."""
    values: dict[Value, np.ndarray] = dict(zip(module.main.arguments, arguments, strict=True))
    interpreter = Interpreter(module)
    with np.errstate(all="ignore"):
        for op in module.main.body.block:
            if op is not module.main.body.block.last:
                values.update(zip(op.results, interpreter.step(op, values), strict=True))
    return values


def random_array(generator: np.random.Generator, kind: TensorType) -> np.ndarray:
    """Returns random elements for a tensor type: normally distributed floats; integers and booleans that are 0 or 1."""
    shape, dtype = kind.static_shape, kind.dtype
    if dtype.kind in "biu":
        return generator.integers(0, 2, shape).astype(dtype)
    real = generator.standard_normal(shape)
    return (real + 1j * generator.standard_normal(shape) if dtype.kind == "c" else real).astype(dtype)
