"""The meaning of a program's host calls, as functions of NumPy arrays: for the interpreter of programs, and for
backends whose calls enter Python anyway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.compiler.artifact import PythonFunction
from trivium.compiler.program import HostCall, PythonCall
from trivium.ir.core import Value
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.interpreter import FAILURES, failure, results_of
from trivium.ir.lapack import ROUTINES, evaluate_numbers
from trivium.ir.ops import Cholesky, CustomCall, TransposeMode, TriangularSolve
from trivium.ir.text import parse
from trivium.ir.types import TensorType

RANDOM_STATE = "trivium.random_state"
"""The custom call, and the function of the host, that return a random state that no other draw uses."""

SEND, RECEIVE = "trivium.send", "trivium.recv"
"""The custom calls and functions that exchange values with the host of the program, on a channel."""

CHOLESKY, TRIANGULAR_SOLVE = "cholesky", "triangular_solve"

TRANSPOSED = {TransposeMode.NO_TRANSPOSE: "N", TransposeMode.TRANSPOSE: "T", TransposeMode.ADJOINT: "C"}
"""LAPACK's letters; host calls have their character codes as attributes."""

Function = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
"""Maps the arguments' arrays to the results' arrays."""


def random_state() -> np.ndarray:
    """Returns a key of one word and a counter of two words."""
    return np.random.default_rng().integers(0, 2**64, 3, np.uint64)


def host_function(call: HostCall) -> Function:
    """Returns the function that a host call computes. Its arrays may have any shape with the right number of
    elements."""
    numbers = call.attributes
    if call.target == RANDOM_STATE:
        return lambda arrays: [random_state()]
    if call.target == CHOLESKY:
        return lambda arrays: [_factor(arrays, **numbers)]
    if call.target == TRIANGULAR_SOLVE:
        return lambda arrays: [_solved(arrays, **numbers)]
    if call.target in ROUTINES:
        return lambda arrays: evaluate_numbers(call.target, arrays, numbers)
    if call.target in (SEND, RECEIVE):
        raise CompileError("the program exchanges values with its host, which is supported only through PJRT's C API")
    raise CompileError(f"the host has no function {call.target!r}")


def _factor(arrays: Sequence[Any], *, batch: int, order: int, lower: int) -> np.ndarray:
    return Cholesky.evaluate(arrays[0].reshape(batch, order, order), bool(lower))


def _solved(
    arrays: Sequence[Any],
    *,
    batch: int,
    rows: int,
    columns: int,
    left_side: int,
    lower: int,
    unit_diagonal: int,
    transpose: int,
) -> np.ndarray:
    order = rows if left_side else columns
    a, b = arrays[0].reshape(batch, order, order), arrays[1].reshape(batch, rows, columns)
    (mode,) = (mode for mode, letter in TRANSPOSED.items() if ord(letter) == transpose)
    return TriangularSolve.evaluate(a, b, bool(left_side), bool(lower), bool(unit_diagonal), mode)


def called_op(call: PythonCall | PythonFunction) -> Any:
    """Returns the custom call itself, taken from its program."""
    module = parse(call.program)
    return next(iter(next(iter(module.functions.values())).body.block))


def python_function(call: PythonCall | PythonFunction) -> tuple[Function, list[TensorType], list[TensorType]]:
    """Returns the function that is currently registered for a custom call, and the types of its arguments and results.
    What it returns is checked; what it raises becomes an `Error` that names the op."""
    definition = CUSTOM_CALLS.get(call.target)
    if definition is None or definition.evaluate is None:
        raise CompileError(f"custom_call has the target {call.target!r}, which is not registered")
    op, evaluate = called_op(call), definition.evaluate

    def function(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        try:
            # Copies, because the registered function may keep its arguments and write to them.
            returned = evaluate(op, *(array.copy() for array in arrays))
            results = results_of(op, returned if isinstance(returned, tuple | list) else (returned,))
            return [_shaped(op, *pair) for pair in zip(results, op.results, strict=True)]
        except FAILURES as error:
            raise failure(op, error)  # noqa: B904, the cause is already set
        except Exception as cause:
            raise ExecutionError(f"host call {call.target} failed: {type(cause).__name__}: {cause}") from cause

    return function, [value.type for value in op.operands], [value.type for value in op.results]


def _shaped(op: CustomCall, result: np.ndarray, value: Value) -> np.ndarray:
    """Returns a result of a custom call, whose shape must be that of its type. Inside the interpreter, a scalar may
    also be a whole array."""
    if result.shape != value.type.static_shape:
        raise ExecutionError(f"{op.NAME} returned shape {result.shape}, its result has type {value.type}")
    return result
