"""Control flow and calls to the host, as steps of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.compiler.lowering.rules import step
from trivium.compiler.program import Copy, HostCall, Step, Switch, While
from trivium.compiler.program import Value as Place
from trivium.ir import ops
from trivium.ir.core import Region, Value
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.errors import CompileError
from trivium.ir.types import TensorType, is_complex

if TYPE_CHECKING:
    from trivium.compiler.compile import Lowering


@step(ops.While)
def while_(lowering: Lowering, op: ops.While) -> None:
    """Carried values have one place each, which the body's results are copied to; those that the body hands on as they
    are stay where they were."""
    returned = op.body.terminator.operands
    carried: list[Place] = []
    for number, (init, result) in enumerate(zip(op.operand, op.results, strict=True)):
        place = lowering.place(init)
        if returned[number] is not op.body.arguments[number]:
            source, place = place, lowering.temporary(result, "carried")
            lowering.copy(source, place)
        for value in (op.cond.arguments[number], op.body.arguments[number], result):
            lowering.bind(value, place)
        carried.append(place)
    condition = lowering.block(op.cond.block)
    predicate = lowering.place(op.cond.terminator.operands[0])
    body = lowering.block(op.body.block)
    body += _assign([lowering.place(value) for value in returned], carried, lowering, returned)
    lowering.steps.append(While(condition, predicate, body))


def _assign(
    sources: Sequence[Place], targets: Sequence[Place], lowering: Lowering, values: Sequence[Value]
) -> list[Step]:
    """Copies all at once: a source that is another one's target is saved first."""
    first: list[Step] = []
    then: list[Step] = []
    for source, target, value in zip(sources, targets, values, strict=True):
        if source is target:
            continue
        if source in targets:
            saved = lowering.temporary(value, "saved")
            first.append(Copy(source, saved))
            source = saved
        then.append(Copy(source, target))
    return first + then


@step(ops.If)
def if_(lowering: Lowering, op: ops.If) -> None:
    _switch(lowering, op, op.pred, [op.false_branch, op.true_branch])


@step(ops.Case)
def case(lowering: Lowering, op: ops.Case) -> None:
    _switch(lowering, op, op.index, op.branches)


def _switch(lowering: Lowering, op: Any, index: Value, regions: Sequence[Region]) -> None:
    results = [lowering.temporary(result) for result in op.results]
    branches = []
    for region in regions:
        steps = lowering.block(region.block)
        sources = [lowering.place(value) for value in region.terminator.operands]
        steps += [Copy(source, result) for source, result in zip(sources, results, strict=True)]
        branches.append(steps)
    for result, place in zip(op.results, results, strict=True):
        lowering.bind(result, place)
    lowering.steps.append(Switch(lowering.place(index), branches))


@step(ops.CustomCall)
def custom_call(lowering: Lowering, op: ops.CustomCall) -> None:
    """A call to the host, by the target's own meaning."""
    known = CUSTOM_CALLS.get(op.call_target_name)
    if known is None or known.evaluate is None:
        raise CompileError(
            f"custom_call has the target {op.call_target_name!r}, which is not registered",
            source=op.location.describe() or None,
        )
    results = []
    for result in op.results:
        results.append(lowering.temporary(result))
        lowering.bind(result, results[-1])
    arguments = tuple(map(lowering.place, op.inputs))
    lowering.steps.append(HostCall(op.call_target_name, _host_function(op, known.evaluate), arguments, tuple(results)))


def _host_function(op: ops.CustomCall, evaluate: Callable[..., Any]) -> Callable[..., None]:
    def call(*arrays: np.ndarray) -> None:
        count = len(op.inputs)
        arguments = [_as(array, value.type) for array, value in zip(arrays[:count], op.inputs, strict=True)]
        computed = evaluate(op, *arguments)
        computed = computed if isinstance(computed, tuple | list) else (computed,)
        for array, result, value in zip(arrays[count:], computed, op.results, strict=True):
            _as(array, value.type)[...] = result

    return call


def _as(array: np.ndarray, kind: TensorType) -> np.ndarray:
    """The array over a buffer, as NumPy has the type: complex numbers are pairs in buffers."""
    return array.view(kind.dtype).reshape(kind.static_shape) if is_complex(kind.element_type) else array
