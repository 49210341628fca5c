"""The reference interpreter: runs a program op by op, each by its own `evaluate`. Slow, and obviously right."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import trivium.ir.lapack  # noqa: F401, whose custom calls every interpreter knows
from trivium.ir.arrays import read_argument
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.declare import Op, Trait, prefixed
from trivium.ir.errors import Error, ExecutionError, Unsupported, UnsupportedOpError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.memory import memory_limit, size_text, storage_size
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.process import Process
from trivium.ir.text import print_op
from trivium.ir.types import TensorType, shapes_compatible


def evaluate(module: Module, *arguments: Any, function: str | None = None) -> tuple[Any, ...]:
    """Runs a function of the module (its entry, if none is named) and returns its results as arrays.

    Arguments are arrays of the signature's shapes and dtypes, or anything that NumPy or DLPack can read as one; a tuple
    stands for a value of tuple type. Raises `ExecutionError`, or the error of an op with its text and its place.
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
    """One op of a block, with the values that nobody needs once it has run."""

    op: Operation
    dead: tuple[Value, ...]


class Interpreter:
    """What `evaluate` of an op gets as its `context`: the module's functions, a generator for ops that draw from hidden
    state, and the process that runs, which is the only one unless several run in parallel."""

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

    def call(self, name: str, arguments: Sequence[Any]) -> tuple[Any, ...]:
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

    def run(self, region: Region, environment: dict[Value, Any]) -> tuple[Any, ...]:
        """Runs a region's only block in an environment that has its arguments and all that it captures. The environment
        is used up."""
        block = region.block
        for step in self._plan(block):
            results = self.step(step.op, environment)
            environment.update(zip(step.op.results, results, strict=True))
            for value in step.dead:
                environment.pop(value, None)
        return tuple(environment[value] for value in block.terminator.operands)

    def step(self, op: Operation, environment: dict[Value, Any]) -> Sequence[Any]:
        """Runs one op; its results, in order. Errors get its text and its place."""
        try:
            if not isinstance(op, Op) or getattr(op, "EVALUATE", None) is None:
                raise UnsupportedOpError("ops that cannot be evaluated", [Unsupported(op.NAME)])
            regions = [self.callable(region, environment) for region in op.regions]
            operands = [environment[value] for value in op.operands]
            self._check_shapes(op, operands)
            returned = evaluate_op(op, operands, regions, self)
            return results_of(op, returned)
        except FAILURES as error:
            raise failure(op, error)  # noqa: B904, it has its cause

    def _check_shapes(self, op: Op, operands: Sequence[Any]) -> None:
        """Holds an op of dynamic operands against its constraints once more, when they have other shapes than before:
        NumPy would broadcast what does not fit."""
        dynamic = self._dynamic.get(op)
        if dynamic is None:
            dynamic = self._dynamic[op] = _dynamic_operands(op)
        if not dynamic:
            return
        shapes = [np.shape(operands[index]) for index in dynamic]
        if shapes != self._shapes.get(op):
            _check_with_shapes(op, operands)
            self._shapes[op] = shapes

    def callable(self, region: Region, environment: dict[Value, Any] | None = None) -> RegionCallable:
        """The region as a function, with the values that it captures."""
        if region not in self._captures:
            self._captures[region] = region.free_values()
        captured = {value: environment[value] for value in self._captures[region]} if environment else {}
        return RegionCallable(region, captured, self)

    def _plan(self, block: Block) -> list[Step]:
        """The ops of a block but its terminator, and when each value is used for the last time."""
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

    def __init__(self, region: Region, captured: dict[Value, Any], interpreter: Interpreter):
        self.region = region
        self.captured = captured
        self.interpreter = interpreter

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self.interpreter.run(
            self.region, {**self.captured, **dict(zip(self.region.arguments, arrays, strict=True))}
        )

    @cached_property
    def elementwise(self) -> bool:
        """Whether running it on whole arrays runs it on each element: nothing inside looks at shapes."""
        block = self.region.block
        return all(op is block.last or _is_scalar_arithmetic(op) for op in block)

    def map(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Runs a region of scalars on each element of arrays of one shape."""
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
"""What ops raise when they are evaluated, those that break their constraints too."""


def failure(op: Operation, error: Exception) -> Error:
    """What an op raised, as an `Error` that has the text and the place of the innermost op, to be raised."""
    if not isinstance(error, Error):
        kind = "needs more memory than there is" if isinstance(error, MemoryError) else type(error).__name__
        told: Error = ExecutionError(f"{op.NAME}: {kind}: {error}")
        told.__cause__ = error
        error = told
    if error.inside is None:
        if isinstance(op, Op) and getattr(error, "label", ""):  # of a constraint of the op
            prefixed(error, type(op))
        error.add(inside=print_op(op), source=op.location.describe() or None)
    return error


_VIEWS = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose")
"""Ops whose result may be a view of less memory."""


def _require_memory(op: Operation) -> None:
    """Refuses an op whose results alone are more than this process may have, before its block is run."""
    nbytes = sum(storage_size(value.type) for value in op.results)
    if nbytes > memory_limit() and op.NAME not in _VIEWS:
        raise failure(op, ExecutionError(f"{op.NAME}: {_too_large(nbytes)}"))


def _too_large(nbytes: int) -> str:
    return f"its results have {size_text(nbytes)}, expected at most {size_text(memory_limit())}, the memory there is"


def _is_scalar_arithmetic(op: Operation) -> bool:
    if not isinstance(op, Op) or any(kind.rank for kind in op.result_types if isinstance(kind, TensorType)):
        return False
    return Trait.ELEMENTWISE in op.TRAITS or (not op.operands and op.is_pure)


def _dynamic_operands(op: Op) -> tuple[int, ...]:
    """The operands without static types, of an op that has constraints."""
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
    """What `evaluate` returned, as a list of arrays that have the dtypes of the op's results."""
    fields = op.RESULTS
    results = (returned,) if len(fields) == 1 and not fields[0].arity else returned
    if len(results) != len(op.results):
        raise ExecutionError(f"{op.NAME} gave {len(results)} results, expected {len(op.results)}")
    return [_checked(op, value, array) for value, array in zip(op.results, results, strict=True)]


def _checked(op: Op, value: Value, array: Any) -> Any:
    if not isinstance(value.type, TensorType):
        return array
    array = np.asarray(array)
    if array.dtype != value.type.dtype:
        raise ExecutionError(f"{op.NAME} gave dtype {array.dtype}, its result has type {value.type}")
    # A region of scalars may be run on whole arrays; elsewhere an array has the shape that the type says.
    if value.type.shape and not shapes_compatible(array.shape, value.type.shape):
        raise ExecutionError(f"{op.NAME} gave shape {array.shape}, its result has type {value.type}")
    return array
