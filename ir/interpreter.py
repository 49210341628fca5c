"""The reference interpreter: runs a program op by op, each by its own `evaluate`. Slow, and obviously right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import trivium.ir.lapack  # noqa: F401, whose custom calls every interpreter knows
from trivium.ir.arrays import Datum, read_argument
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.declare import Op, Trait, prefixed
from trivium.ir.errors import Error, ExecutionError, Unsupported, UnsupportedOpError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.memory import memory_limit, size_text, storage_size
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.process import Process
from trivium.ir.stack import with_stack
from trivium.ir.text import print_op
from trivium.ir.types import TensorType, shapes_compatible


@with_stack
def evaluate(module: Module, *arguments: object, function: str | None = None) -> tuple[Any, ...]:
    """Runs a function of the module (by default its entry) and returns its results as arrays.

    Arguments are arrays of the signature's shapes and dtypes, or anything that NumPy or DLPack can read as such; a
    tuple stands for a value of tuple type. Raises `ExecutionError`, or the error of an op with its text and location.
    """
    entry = module.main if function is None else module.function(function)
    expected = entry.function_type.inputs
    if len(arguments) != len(expected):
        raise ExecutionError(f"{entry.sym_name} was given {len(arguments)} arguments, expected {len(expected)}")
    arrays = [
        read_argument(value, kind, f"argument {index} of {entry.sym_name}")
        for index, (value, kind) in enumerate(zip(arguments, expected, strict=True))
    ]
    nbytes = sum(map(storage_size, entry.function_type.results))
    if nbytes > memory_limit():
        raise ExecutionError(f"{entry.sym_name}: {_too_large(nbytes)}")
    try:
        return Interpreter(module).call(entry.sym_name, arrays)
    except RecursionError:
        raise ExecutionError(
            f"{entry.sym_name} nests calls or regions too deep; the language has no recursion"
        ) from None


@dataclass(frozen=True)
class Step:
    """One op of a block, with the values that are no longer needed after it has run."""

    op: Operation
    dead: tuple[Value, ...]


class Interpreter:
    """The `context` of an op's `evaluate`: the module's functions, a generator for ops that draw from hidden state, and
    the running process, which is the only one unless several run in parallel."""

    def __init__(self, module: Module | None = None, seed: int | None = None, process: Process | None = None):
        self.module = module
        self.seed = seed
        self.process = process or Process()
        self._steps: dict[Block, list[Step]] = {}
        self._captures: dict[Region, list[Value]] = {}
        self._dynamic: dict[Operation, tuple[int, ...]] = {}
        self._shapes: dict[Operation, list[tuple[int, ...]]] = {}

    @cached_property
    def random(self) -> np.random.Generator:
        """The hidden state of `stablehlo.rng`."""
        return np.random.default_rng(self.seed)

    @cached_property
    def _functions(self) -> dict[str, Function]:
        return self.module.functions if self.module is not None else {}

    def call(self, name: str, arguments: Sequence[Datum]) -> tuple[Datum, ...]:
        """Runs the function of that name."""
        if self.module is None:
            raise ExecutionError(f"{name} is called outside of a module")
        function = self._functions.get(name) or self.module.function(name)
        if function.is_declaration:
            raise ExecutionError(f"{name} has no body, only a declaration")
        try:
            with np.errstate(all="ignore"):
                return self.run(function.body, dict(zip(function.arguments, arguments, strict=True)))
        except Error as error:
            error.add(during=f"evaluating {function.sym_name!r}")
            raise

    def run(self, region: Region, environment: dict[Value, Datum]) -> tuple[Datum, ...]:
        """Runs a region's only block in an environment with its arguments and everything that it captures. The
        environment is modified."""
        block = region.block
        for step in self._plan(block):
            results = self.step(step.op, environment)
            environment.update(zip(step.op.results, results, strict=True))
            for value in step.dead:
                environment.pop(value, None)
        return tuple(environment[value] for value in block.terminator.operands)

    def step(self, op: Operation, environment: Mapping[Value, Datum]) -> Sequence[Any]:
        """Runs one op and returns its results in order. Adds the op's text and location to errors."""
        try:
            if not isinstance(op, Op) or getattr(op, "EVALUATE", None) is None:
                raise UnsupportedOpError("ops that cannot be evaluated", [Unsupported(op.NAME)])
            regions = [self.callable(region, environment) for region in op.regions]
            operands = [environment[value] for value in op.operands]
            self._check_shapes(op, operands)
            returned = evaluate_op(op, operands, regions, self)
            return results_of(op, returned)
        except FAILURES as error:
            raise failure(op, error)  # noqa: B904, the cause is already set

    def _check_shapes(self, op: Op, operands: Sequence[Any]) -> None:
        """Checks the constraints of an op with dynamic operands again if their shapes have changed, because NumPy would
        broadcast operands that do not fit."""
        dynamic = self._dynamic.get(op)
        if dynamic is None:
            dynamic = self._dynamic[op] = _dynamic_operands(op)
        if not dynamic:
            return
        shapes = [np.shape(operands[index]) for index in dynamic]
        if shapes != self._shapes.get(op):
            _check_with_shapes(op, operands)
            self._shapes[op] = shapes

    def callable(self, region: Region, environment: Mapping[Value, Datum] | None = None) -> RegionCallable:
        """Returns the region as a function, with the values that it captures."""
        if region not in self._captures:
            self._captures[region] = region.free_values()
        captured = {value: environment[value] for value in self._captures[region]} if environment else {}
        return RegionCallable(region, captured, self)

    def _plan(self, block: Block) -> list[Step]:
        """Returns the ops of a block except its terminator, and when each value is used for the last time."""
        if block not in self._steps:
            alive = set(block.terminator.operands)
            plan = []
            for op in reversed(block):
                if op is block.last:
                    continue
                used = [*op.operands, *(value for region in op.regions for value in region.free_values()), *op.results]
                dead = tuple(value for value in dict.fromkeys(used) if value not in alive)
                alive.update(dead)
                plan.append(Step(op, dead))
            for step in reversed(plan):
                _require_memory(step.op)
            self._steps[block] = plan[::-1]
        return self._steps[block]


class RegionCallable:
    """A region as a function of arrays: calling it runs it; `map` runs a scalar region on each element."""

    def __init__(self, region: Region, captured: dict[Value, Datum], interpreter: Interpreter):
        self.region = region
        self.captured = captured
        self.interpreter = interpreter

    def __call__(self, *arrays: Datum) -> tuple[Any, ...]:
        return self.interpreter.run(
            self.region, {**self.captured, **dict(zip(self.region.arguments, arrays, strict=True))}
        )

    @cached_property
    def elementwise(self) -> bool:
        """Whether running it on whole arrays is the same as on each element, because nothing inside depends on
        shapes."""
        block = self.region.block
        return all(op is block.last or _is_scalar_arithmetic(op) for op in block)

    def map(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Runs a region of scalars on each element of arrays of the same shape."""
        shape = arrays[0].shape
        if self.elementwise:
            return tuple(np.broadcast_to(result, shape) for result in self(*arrays))
        types = [value.type for value in self.region.terminator.operands]
        results = [np.empty(shape, kind.dtype) for kind in types]
        for index in np.ndindex(shape):
            for result, value in zip(results, self(*(np.asarray(array[index]) for array in arrays)), strict=True):
                result[index] = value
        return tuple(results)


FAILURES = (Error, ArithmeticError, AttributeError, LookupError, MemoryError, StopIteration, TypeError, ValueError)
"""The exceptions that ops may raise in `evaluate`, including ops that violate their constraints."""


def failure(op: Operation, error: Exception) -> Error:
    """Returns what an op raised as an `Error` with the text and location of the innermost op, to be raised."""
    if not isinstance(error, Error):
        kind = "needs more memory than there is" if isinstance(error, MemoryError) else type(error).__name__
        wrapped: Error = ExecutionError(f"{op.NAME}: {kind}: {error}")
        wrapped.__cause__ = error
        error = wrapped
    if error.inside is None:
        if isinstance(op, Op) and getattr(error, "label", ""):  # of a constraint of the op
            prefixed(error, type(op))
        error.add(inside=print_op(op), source=op.location.describe() or None)
    return error


_VIEWS = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose")
"""Ops whose result may be a view of a smaller array."""


def _require_memory(op: Operation) -> None:
    """Refuses an op whose results alone exceed the memory limit of this process, before its block runs."""
    nbytes = sum(storage_size(value.type) for value in op.results)
    if nbytes > memory_limit() and op.NAME not in _VIEWS:
        raise failure(op, ExecutionError(f"{op.NAME}: {_too_large(nbytes)}"))


def _too_large(nbytes: int) -> str:
    return f"its results have {size_text(nbytes)}, expected at most {size_text(memory_limit())}, the available memory"


def _is_scalar_arithmetic(op: Operation) -> bool:
    if not isinstance(op, Op) or any(kind.rank for kind in op.result_types if isinstance(kind, TensorType)):
        return False
    return Trait.ELEMENTWISE in op.TRAITS or (not op.operands and op.is_pure)


def _dynamic_operands(op: Op) -> tuple[int, ...]:
    """Returns the indices of the operands without static types, if the op has constraints."""
    if type(op).CHECK is None:
        return ()
    return tuple(index for index, kind in enumerate(op.operand_types) if not getattr(kind, "is_static", True))


def _check_with_shapes(op: Op, operands: Sequence[Any]) -> None:
    known = copy(op)
    known._operands = tuple(map(_of_known_shape, op.operands, operands))
    try:
        type(op).CHECK(known)  # type: ignore[misc]
    except VerificationError as error:
        raise ExecutionError(error.message, label=error.label) from None


def _of_known_shape(value: Value, array: Any) -> Value:
    if not isinstance(value.type, TensorType) or value.type.is_static:
        return value
    known = copy(value)
    known.type = value.type.with_shape(np.shape(array))
    return known


def results_of(op: Op, returned: Any) -> Sequence[Any]:
    """Returns what `evaluate` returned as a list of arrays, after checking their dtypes and shapes."""
    fields = op.RESULTS
    results = (returned,) if len(fields) == 1 and not fields[0].arity else returned
    if len(results) != len(op.results):
        raise ExecutionError(f"{op.NAME} returned {len(results)} results, expected {len(op.results)}")
    return [_checked(op, value, array) for value, array in zip(op.results, results, strict=True)]


def _checked(op: Op, value: Value, array: Datum) -> Datum:
    if not isinstance(value.type, TensorType):
        return array
    array = np.asarray(array)
    if array.dtype != value.type.dtype:
        raise ExecutionError(f"{op.NAME} returned dtype {array.dtype}, its result has type {value.type}")
    # A region of scalars may run on whole arrays; otherwise an array has the shape of its type.
    if value.type.shape and not shapes_compatible(array.shape, value.type.shape):
        raise ExecutionError(f"{op.NAME} returned shape {array.shape}, its result has type {value.type}")
    return array
