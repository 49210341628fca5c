"""Operands that are sizes, for the tests of ops that take sizes: constants, and values that are known only at run
time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.ops.constraints import value
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import (
    Constant,
)
from trivium.ir.types import I64, type_of

TWO = value(2, of=I64)


def constant(*numbers: Any) -> Value:
    """Returns an operand whose numbers are known before the program runs."""
    return Constant(np.array(numbers, np.int64)).result


def run(op: type[Op], *arrays: Any, result: Any, **attributes: Any) -> None:
    """Evaluates a program of one op whose sizes are known only at run time."""
    arrays = tuple(map(np.asarray, arrays))
    body = lambda builder, *given: builder.add(op(*given, **attributes, result=result))  # noqa: E731
    types = [type_of(array) for array in arrays]
    evaluate(Module.build(functions=[Function.build("main", types, body)]), *arrays)
