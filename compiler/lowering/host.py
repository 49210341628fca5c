"""Ops that are computed by functions of the host: factorizations, which LAPACK libraries provide, the state of random
draws, and custom calls that the user registered. A program names them; the backend that loads it looks the names
up."""

from __future__ import annotations

import math
from typing import Any

from trivium.compiler.host import CHOLESKY, RANDOM_STATE, RECEIVE, SEND, TRANSPOSED, TRIANGULAR_SOLVE
from trivium.compiler.lowering.program_builder import ProgramBuilder
from trivium.compiler.lowering.rules import step
from trivium.compiler.program import Array, HostCall, PythonCall
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.declare import Op
from trivium.ir.errors import CompileError
from trivium.ir.func import Function, Module
from trivium.ir.lapack import is_call, is_target, read_call
from trivium.ir.text import print_module


@step(ops.Cholesky)
def cholesky(lowering: ProgramBuilder, op: ops.Cholesky) -> None:
    *batch, _, order = op.a.type.static_shape
    _call(lowering, op, CHOLESKY, {"batch": math.prod(batch), "order": order, "lower": int(op.lower)})


@step(ops.TriangularSolve)
def triangular_solve(lowering: ProgramBuilder, op: ops.TriangularSolve) -> None:
    *batch, rows, columns = op.b.type.static_shape
    flags = {"left_side": op.left_side, "lower": op.lower, "unit_diagonal": op.unit_diagonal}
    sizes = {"batch": math.prod(batch), "rows": rows, "columns": columns}
    transposed = ord(TRANSPOSED[op.transpose_a])
    attributes = {**sizes, **{name: int(flag) for name, flag in flags.items()}, "transpose": transposed}
    _call(lowering, op, TRIANGULAR_SOLVE, attributes)


def _call(lowering: ProgramBuilder, op: Op, target: str, attributes: dict[str, int]) -> None:
    results = _results(lowering, op)
    if any(result.nbytes for result in results):
        arguments = tuple(map(lowering.array, op.operands))
        lowering.steps.append(HostCall(target, attributes, arguments, results))


@step(ops.CustomCall)
def custom_call(lowering: ProgramBuilder, op: ops.CustomCall) -> None:
    """A call of Python, or of another function that the table defines, unless the compiler itself knows the target."""
    if op.call_target_name == RANDOM_STATE:
        _call(lowering, op, RANDOM_STATE, {})
        return
    if op.call_target_name in (SEND, RECEIVE):
        _exchange(lowering, op)
        return
    known = CUSTOM_CALLS.get(op.call_target_name)
    if is_target(op.call_target_name) and (known is None or known.native is None or is_call(op)):
        call = read_call(op)
        _call(lowering, op, call.routine, call.numbers)
        return
    if known is None or (known.evaluate is None and known.native is None):
        raise CompileError(
            f"custom_call has the target {op.call_target_name!r}, which is not registered",
            source=op.location.describe() or None,
        )
    results = _results(lowering, op)
    arguments = tuple(map(lowering.array, op.inputs))
    lowering.steps.append(PythonCall(op.call_target_name, _as_program(op), arguments, results))


def _exchange(lowering: ProgramBuilder, op: ops.CustomCall) -> None:
    """Sends the operands, or receives the results. The last ones of both are in the place of tokens."""
    *values, _ = map(lowering.array, op.operands)
    results = _results(lowering, op)
    sizes = [value.nbytes for value in (values if op.call_target_name == SEND else results[:-1])]
    attributes = {"channel": int(str(op.backend_config)), "values": len(sizes)}
    attributes |= {f"bytes{index}": size for index, size in enumerate(sizes)}
    lowering.steps.append(HostCall(op.call_target_name, attributes, tuple(values), results))


def _results(lowering: ProgramBuilder, op: Op) -> tuple[Array, ...]:
    results = tuple(lowering.temporary(result) for result in op.results)
    for result, array in zip(op.results, results, strict=True):
        lowering.bind(result, array)
    return results


def _as_program(op: ops.CustomCall) -> str:
    """Returns the text of a module whose first function has only this op. The module also has the functions and symbols
    that the op may name."""

    def body(builder: Builder, *arguments: Value) -> tuple[Value, ...]:
        return builder.add(op.clone(dict(zip(op.operands, arguments, strict=True))))

    entry = Function.build("trivium.python_call", op.operand_types, body)
    named: list[Any] = _beside(op) if op.called_computations else []
    return print_module(Module.build(functions=[entry, *named]), generic=True, locations=True)


def _beside(op: Operation) -> list[Operation]:
    """Copies the other functions and symbols of the op's module, without the function that contains the op."""
    parents = [op]
    while not isinstance(parents[-1], Module):
        parents.append(parents[-1].parent_op)  # type: ignore[arg-type]
    *_, function, module = parents
    assert isinstance(module, Module)
    return [other.clone() for other in module.body.block if other is not function]
