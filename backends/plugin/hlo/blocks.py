"""Blocks of an optimized program as instructions. A kernel of several ops becomes a fusion; one that computes a single
op becomes the instruction of that op. Ops with a function under `writes` need more than a row of the table
(`instructions.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from trivium.backends.plugin.hlo.computation import Computation
from trivium.backends.plugin.hlo.instructions import Row, attributes_of, row_of
from trivium.backends.plugin.hlo.shapes import shape_of, tuple_shape
from trivium.backends.plugin.hlo.wire import number, text
from trivium.compiler.costs import free_values, is_marked_contraction
from trivium.compiler.fusion import Group, fuse
from trivium.compiler.fusion.forms import Rows, Whole
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.location import UNKNOWN
from trivium.ir.ops.control import CustomCallApiVersion

Write = TypeVar("Write", bound=Callable[[Computation, Any], None])

_WRITERS: dict[type[Operation], Callable[[Computation, Any], None]] = {}


def writes(*kinds: type[Operation]) -> Callable[[Write], Write]:
    """Registers the function that writes ops of these kinds."""

    def register(write: Write) -> Write:
        _WRITERS.update(dict.fromkeys(kinds, write))
        return write

    return register


def write_block(computation: Computation, block: Block) -> list[int]:
    """Writes a block in the order in which it runs, and returns what it returns."""
    *before, end = block
    if computation.fuses:
        fusion = fuse(block, computation.program.target)
        computation.views |= fusion.views
        items: Iterable[Group | Operation] = fusion.items
    else:
        items = before
    for item in items:
        if isinstance(item, Group):
            _write_group(computation, item)
        else:
            write_op(computation, item)
    return [value_of(computation, value) for value in end.operands]


def value_of(computation: Computation, value: Value) -> int:
    """Returns the instruction of a value. Constants and views are written where they are needed."""
    if value not in computation.known:
        if value in computation.views:
            computation.known[value] = _view(computation, value)
        else:
            assert value.defining_op is not None, "a computation has all arguments that its ops use"
            write_op(computation, value.defining_op)
    return computation.known[value]


def _view(computation: Computation, value: Value) -> int:
    op = value.defining_op
    opcode = "opt-barrier" if isinstance(op, ops.OptimizationBarrier) else "bitcast"
    location = UNKNOWN if op is None else op.location
    return computation.add(
        opcode, shape_of(value.type), [value_of(computation, computation.views[value])], location=location
    )


def write_op(computation: Computation, op: Operation) -> None:
    """Writes an op, unless it is there already."""
    if op.results and all(result in computation.known for result in op.results):
        return
    if (write := _WRITERS.get(type(op))) is not None:
        write(computation, op)
    elif (row := row_of(op)) is not None and all(map(_is_closed, op.regions)):
        called = [_function(computation, region) for region in op.regions]
        read = op.operands if row.operands is None else [op.operands[index] for index in row.operands]
        operands = [value_of(computation, value) for value in read]
        bind(computation, op, instruction(computation, row, op, operands, called))
    else:
        _write_call(computation, op)


def instruction(
    computation: Computation, row: Row, op: Any, operands: Sequence[int], called: Sequence[int] = ()
) -> int:
    """Writes an op as the instruction of its row."""
    fields = row.fields(op) + channel_of(computation, op)
    return computation.add(row.opcode, results_shape(op), operands, fields, called, op.location)


def channel_of(computation: Computation, op: Any) -> bytes:
    """Returns the field with an op's channel, if it has one."""
    handle = getattr(op, "channel_handle", None)
    return computation.program.channel() if handle is not None and handle.handle > 0 else b""


def results_shape(op: Operation) -> bytes:
    """Returns the shape of an op's result, which is a tuple unless there is exactly one."""
    shapes = [shape_of(value.type) for value in op.results]
    return shapes[0] if len(shapes) == 1 else tuple_shape(shapes)


def bind(computation: Computation, op: Operation, found: int) -> None:
    """Records the instruction with an op's results."""
    if len(op.results) == 1:
        computation.known[op.results[0]] = found
    else:
        unpack(computation, found, op.results)


def unpack(computation: Computation, of: int, values: Iterable[Value]) -> None:
    """Takes values out of a tuple, as far as they are used."""
    for index, value in enumerate(values):
        if value.uses:
            computation.known[value] = computation.element(of, index, shape_of(value.type))


def _write_call(computation: Computation, op: Any) -> None:
    """Writes an op that HLO does not have: as a custom call of its name, which reads what its regions read."""
    operands = [value_of(computation, value) for value in dict.fromkeys((*op.operands, *free_values(op)))]
    fields = text(28, op.NAME) + text(43, attributes_of(op)) + number(65, not op.is_pure)
    fields += number(77, CustomCallApiVersion.API_VERSION_ORIGINAL)
    bind(computation, op, computation.add("custom-call", results_shape(op), operands, fields, location=op.location))


# Functions of reductions, sorts and scatters


def _is_closed(region: Region) -> bool:
    """Whether a region reads nothing from outside but constants, of which its computation has copies."""
    return all(isinstance(value.defining_op, ops.Constant) for value in region.free_values())


def _function(computation: Computation, region: Region) -> int:
    inner = Computation(computation.program, "region", fuses=False)
    for index, argument in enumerate(region.arguments):
        inner.known[argument] = inner.parameter(shape_of(argument.type), f"Arg_{index}")
    returned = write_block(inner, region.block)
    return inner.finish(returned[0] if len(returned) == 1 else inner.tuple(returned))


# Kernels


def _write_group(computation: Computation, group: Group) -> None:
    members = group.ordered()
    if len(group.computed()) == 1:
        for op in members:
            write_op(computation, op)
        return
    inner = Computation(computation.program, "fused_computation", fuses=False)
    outside = _read(members)
    for index, value in enumerate(outside):
        inner.known[value] = inner.parameter(shape_of(value.type), f"param_{index}")
    for op in members:
        write_op(inner, op)
    outputs = [value for value in group.outputs if value in inner.known]  # others have no readers
    results = [inner.known[value] for value in outputs]
    called = inner.finish(results[0] if len(results) == 1 else inner.tuple(results), is_fusion=True)
    shapes = list(map(inner.shape, results))
    found = computation.add(
        "fusion",
        shapes[0] if len(shapes) == 1 else tuple_shape(shapes),
        [value_of(computation, value) for value in outside],
        text(11, _kind(group)),
        [called],
        (group.form.principal or group.last).location,
    )
    if len(shapes) == 1:
        computation.known[outputs[0]] = found
    else:
        unpack(computation, found, outputs)


def _read(members: Sequence[Operation]) -> list[Value]:
    """Returns what ops read that they do not compute, except single numbers, which are part of a kernel's code."""
    inside = {result for op in members for result in op.results}
    read = dict.fromkeys(value for op in members for value in (*op.operands, *free_values(op)))
    return [value for value in read if value not in inside and not _is_one_number(value)]


def _is_one_number(value: Value) -> bool:
    return isinstance(value.defining_op, ops.Constant) and value.defining_op.value.is_splat


def _kind(group: Group) -> str:
    """Returns XLA's name for a form of fusion: elements, a reduction with what it reads, or a product with what follows
    it."""
    if any(map(is_marked_contraction, group.members)):
        return "kOutput"
    return "kInput" if isinstance(group.form, Rows | Whole) else "kLoop"
