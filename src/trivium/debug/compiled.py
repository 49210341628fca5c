"""Compares a compiled program with the meaning of its ops, op by op. One run computes all values of the program, and
each op is evaluated on the operands from that run, so that rounding errors do not accumulate, and the first op that
differs is the wrong one. If the program is right as soon as all values are results, the mistake is in how the compiler
combines several ops. Then each op before a wrong result is tried alone as a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.compiler.pipeline import inline
from trivium.debug.differences import Difference, difference
from trivium.debug.parting import Parting
from trivium.debug.values import evaluated
from trivium.executable import compile_module
from trivium.ir import ops
from trivium.ir.arrays import read_argument
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error, ExecutionError
from trivium.ir.func import FuncReturn, Module
from trivium.ir.interpreter import Interpreter
from trivium.ir.text import print_op
from trivium.ir.types import TensorType

LARGEST_CONSTANT = 1 << 20
"""The number of elements up to which a constant is compared, too."""


def first_wrong_op(
    module: Module, arguments: Sequence[object], *, device: str = "cpu", tolerance: float | None = None
) -> Parting | None:
    """Returns the first op of the compiled program that is wrong; `None` if its results are right."""
    module = inline(module)
    inputs = read_arguments(module, arguments)
    return _among_all(module, inputs, device, tolerance) or _before_result(module, inputs, device, tolerance)


def read_arguments(module: Module, arguments: Sequence[object]) -> list[np.ndarray]:
    """Returns the arguments of a program as arrays of its types."""
    kinds = module.main.function_type.inputs
    if len(arguments) != len(kinds):
        raise ExecutionError(f"{module.main.sym_name} was given {len(arguments)} arguments, expected {len(kinds)}")
    return [
        np.asarray(read_argument(value, kind, f"argument {index}"))
        for index, (value, kind) in enumerate(zip(arguments, kinds, strict=True))
    ]


def run_with_results(
    module: Module, numbers: Sequence[int], inputs: Sequence[np.ndarray], device: str
) -> list[np.ndarray]:
    """Compiles and runs a program whose results are all those of its ops with these numbers."""
    copy = module.clone()
    main, every = copy.main, list(copy.main.body.block)
    main.body.terminator.erase()
    Builder(main.body.block).add(FuncReturn([result for number in numbers for result in every[number].results]))
    main.attributes["res_attrs"] = None
    main.refresh_type()
    return list(compile_module(copy, device=device, threads=None, fast_math=False)(*inputs))


def _among_all(module: Module, inputs: Sequence[np.ndarray], device: str, tolerance: float | None) -> Parting | None:
    every = list(module.main.body.block)
    shown = [number for number, op in enumerate(every) if _can_be_compared(op)]
    results = iter(run_with_results(module, shown, inputs, device))
    values: dict[Value, np.ndarray] = dict(zip(module.main.arguments, inputs, strict=True))
    interpreter = Interpreter(module)
    ours = {number: [next(results) for _ in every[number].results] for number in shown}
    for number, op in enumerate(every[:-1]):
        with np.errstate(all="ignore"):
            expected = interpreter.step(op, values)
        found = ours.get(number, expected)
        parting = _parting(op, found, expected, tolerance)
        if parting is not None:
            return parting
        values.update(zip(op.results, found, strict=True))
    return None


def _can_be_compared(op: Operation) -> bool:
    """Whether the results of an op are tensors that are a function of its operands."""
    if isinstance(op, ops.Constant):
        return op.value.array.size <= LARGEST_CONSTANT
    static = all(isinstance(value.type, TensorType) and value.type.is_static for value in op.results)
    return bool(op.results) and static and op.is_pure


def _parting(
    op: Operation, ours: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float | None
) -> Parting | None:
    for index, (mine, wanted) in enumerate(zip(ours, expected, strict=True)):
        found = difference(mine, np.asarray(wanted), tolerance) if isinstance(mine, np.ndarray) else None
        if found is not None:
            return described(op, index, found)
    return None


def described(op: Operation, index: int, found: Difference) -> Parting:
    """Returns a difference in the result of an op, with the op's text and the user's line."""
    return Parting(print_op(op), op.location.describe(), index, found, "running the compiled program")


def _before_result(
    module: Module, inputs: Sequence[np.ndarray], device: str, tolerance: float | None
) -> Parting | None:
    """Finds, by bisection, the first op that is wrong when it is the only result, among the ops that a wrong result
    depends on."""
    expected = evaluated(module, inputs)
    final = compile_module(module, device=device, threads=None, fast_math=False)(*inputs)
    wrong = [i for i, value in enumerate(module.main.returned) if difference(final[i], expected[value], tolerance)]
    if not wrong:
        return None

    every = list(module.main.body.block)
    needed = _ancestors(module.main.returned[wrong[0]])
    candidates = [number for number, op in enumerate(every) if op in needed and _can_be_compared(op)]
    if not candidates:
        raise Error("a result is wrong, but none of the ops that it depends on can be compared")

    def parting(number: int) -> Parting | None:
        op = every[number]
        results = run_with_results(module, [number], inputs, device)
        return _parting(op, results, [expected[value] for value in op.results], tolerance)

    low, high = 0, len(candidates) - 1  # the last one is wrong: it is the result
    while low < high:
        middle = (low + high) // 2
        if parting(candidates[middle]) is None:
            low = middle + 1
        else:
            high = middle
    return parting(candidates[low])


def _ancestors(value: Value) -> set[Operation]:
    """Returns the ops that a value depends on."""
    found: set[Operation] = set()
    waiting = [value]
    while waiting:
        op = waiting.pop().defining_op
        if op is not None and op not in found:
            found.add(op)
            waiting += op.operands
            waiting += [free for region in op.regions for free in region.free_values()]
    return found
