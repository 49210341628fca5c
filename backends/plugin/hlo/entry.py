"""An optimized program in XLA's format `hlo_with_config`, for hosts that show it to their users: what each device runs,
with the arguments and results that the host knows, and between these what the compiler has made of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.backends.plugin.hlo.blocks import write_block
from trivium.backends.plugin.hlo.computation import Computation, Program
from trivium.backends.plugin.hlo.parts import cut, gather
from trivium.backends.plugin.hlo.shapes import array_shape, shape_of
from trivium.backends.plugin.hlo.wire import message, messages, number, numbers, text
from trivium.compiler.layouts import MinorToMajor, places
from trivium.compiler.passes.partition import Held
from trivium.compiler.target import Target
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.types import TensorType, Type

MAY_ALIAS, TUPLE = 1, 2


@dataclass(frozen=True)
class Port:
    """How devices hold an argument or a result, if they hold parts, and its layout."""

    order: MinorToMajor = ()
    held: Held | None = None


@dataclass(frozen=True)
class Interface:
    """The program as its hosts see it. `results_in`: for each argument, the result in whose memory it may be, or -1;
    `donated`: whether a run takes its memory. `shardings` are those of arguments and results."""

    name: str
    replicas: int
    partitions: int
    arguments: Sequence[Port]
    results: Sequence[Port]
    results_in: Sequence[int]
    donated: Sequence[bool]
    shardings: Sequence[bytes] = ()


def optimized_program(graph: Module, target: Target, interface: Interface) -> bytes:
    """Returns an `HloModuleProtoWithConfig` of XLA's `xla.proto`."""
    program = Program(target)
    main = Computation(program, "main")
    own_number = "replica-id" if interface.replicas > 1 else "partition-id"
    block = graph.main.body.block
    for index, (value, port) in enumerate(zip(block.arguments, interface.arguments, strict=False)):
        main.known[value] = _argument(main, index, value.type, port)
    for value in block.arguments[len(interface.arguments) :]:
        main.known[value] = main.add(own_number, shape_of(value.type))
    assert block.last is not None, "a function ends in a return"
    returned = zip(write_block(main, block), block.last.operands, interface.results, strict=True)
    results = [_result(main, found, value, port, own_number) for found, value, port in returned]
    root = results[0] if len(results) == 1 else main.tuple(results)
    signature = main.signature(root)
    main.finish(root)
    module = (
        text(1, interface.name)
        + text(2, main.name)
        + messages(3, program.computations)
        + message(4, signature)
        + number(6, main.number)
        + message(8, _aliases(interface))
        + message(18, _donors(interface))
        + _shardings(interface)
    )
    devices = number(4, interface.replicas) + number(5, interface.partitions)
    # XLA's defaults: it derives no shardings of arguments and results.
    fixed = numbers(33, [False]) + numbers(27, [False])
    config = message(1, signature) + devices + number(7, interface.partitions > 1) + fixed
    return message(1, module) + message(2, config)


def _argument(main: Computation, index: int, kind: Type, port: Port) -> int:
    """Returns the value that the program computes with: in the order of memory and, if it needs the whole, gathered."""
    if not isinstance(kind, TensorType):
        return main.parameter(shape_of(kind), f"Arg_{index}")
    whole = kind.static_shape
    part = whole if port.held is None else port.held.part.shape
    found = main.parameter(_outer_shape(part, kind, port.order), f"Arg_{index}")
    if port.order:
        found = main.add("bitcast", array_shape(part, kind.element_type), [found])
    if port.held is None or part == whole:
        return found
    return gather(main, found, port.held.part, whole, kind.element_type)


def _result(main: Computation, found: int, value: Value, port: Port, own_number: str) -> int:
    """Returns what the host receives."""
    kind = value.type
    if not isinstance(kind, TensorType):
        return found
    part = kind.static_shape
    if port.held is not None and port.held.part.shape != part:
        part = port.held.part.shape
        found = cut(main, found, port.held.part, kind.element_type, own_number)
    return main.add("bitcast", _outer_shape(part, kind, port.order), [found]) if port.order else found


def _outer_shape(shape: Sequence[int], kind: TensorType, order: MinorToMajor) -> bytes:
    """Returns the shape, as hosts know it, of an array whose dimensions in the order of memory are given."""
    shape = [shape[place] for place in places(order)] if order else shape
    return array_shape(shape, kind.element_type, order)


def _place(interface: Interface, result: int) -> list[int]:
    """Returns where a result is in the tuple of results, if there is one."""
    return [result] if len(interface.results) != 1 else []


def _aliases(interface: Interface) -> bytes:
    pairs = [(argument, result) for argument, result in enumerate(interface.results_in) if result >= 0]
    return messages(
        1,
        (
            numbers(1, _place(interface, result)) + number(2, argument) + number(4, MAY_ALIAS)
            for argument, result in pairs
        ),
    )


def _donors(interface: Interface) -> bytes:
    taken = enumerate(zip(interface.donated, interface.results_in, strict=True))
    return messages(1, (number(1, argument) for argument, (flag, result) in taken if flag and result < 0))


def _shardings(interface: Interface) -> bytes:
    if not interface.shardings:
        return b""
    count = len(interface.arguments)
    before, after = interface.shardings[:count], interface.shardings[count:]
    # XLA has one sharding for a result that is an empty tuple.
    together = after[0] if len(after) == 1 else number(1, TUPLE) + messages(5, after or [b""])
    return messages(14, before) + message(12, together)
