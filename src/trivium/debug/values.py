"""All values of a program, as the interpreter computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.interpreter import Interpreter


def evaluated(module: Module, arguments: Sequence[np.ndarray]) -> dict[Value, np.ndarray]:
    """Returns the arguments of a program without calls, and the results of all of its ops."""
    values: dict[Value, np.ndarray] = dict(zip(module.main.arguments, arguments, strict=True))
    interpreter = Interpreter(module)
    with np.errstate(all="ignore"):
        for op in module.main.body.block:
            if op is not module.main.body.block.last:
                values.update(zip(op.results, interpreter.step(op, values), strict=True))
    return values
