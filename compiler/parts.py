"""Programs with extents that depend on the data that they compute with. Such a program becomes two: the first one
ends where the extents are known, and returns them with everything that the rest needs and that it has computed; the
rest, which takes these and arguments, is a program of dynamic shapes, to be compiled for the extents once they have
been computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import CompileError
from trivium.ir.func import Function, Module
from trivium.ir.ops import Constant
from trivium.ir.types import TensorType


class UnknownExtents(CompileError):
    """An op with extents that depend on values which are only known at run time. `sizes` are the operands that list
    these extents, as far as they are unknown; that of a conditional determines which branch runs."""

    def __init__(self, op: Op, sizes: Sequence[Value]):
        kind = next((value.type for value in op.results), None)
        reason = "its extents depend on values that are only known at run time"
        super().__init__(f"{op.NAME}: a result has type {kind}, and {reason}")
        self.op: Op = op
        self.sizes: tuple[Value, ...] = tuple(dict.fromkeys(sizes))


class Parts(NamedTuple):
    """`first` takes the arguments of the whole program and has static shapes. `passed` says what `rest` takes: the
    numbers of arguments of the whole or, counted after these, of results of `first`. It is compiled for the values of
    the first `known` of them."""

    first: Module
    rest: Module
    passed: tuple[int, ...]
    known: int


def split(unknown: UnknownExtents) -> Parts:
    """Returns the parts before and from an op on. Raises the error itself if the op is inside another one, or if what
    would have to pass from one part to the other is not a tensor."""
    function = unknown.op.parent_op
    if not isinstance(function, Function) or not unknown.sizes:
        raise unknown
    ops = list(function.body.block)
    before = list(takewhile(lambda op: op is not unknown.op, ops))
    after = ops[len(before) :]
    constants = [op for op in before if isinstance(op, Constant)]
    made = {*function.arguments, *(value for op in before for value in op.results)}
    made -= {value for op in constants for value in op.results}
    passed = tuple(dict.fromkeys((*unknown.sizes, *(value for value in _used(after) if value in made))))
    if not all(isinstance(value.type, TensorType) and value.type.is_static for value in passed):
        raise unknown
    arguments = function.arguments
    computed = [value for value in passed if value not in arguments]
    first = _module(function.sym_name, arguments, before, computed)
    rest = _module(function.sym_name, passed, [*constants, *after[:-1]], function.returned)
    numbers = {value: number for number, value in enumerate((*arguments, *computed))}
    return Parts(first, rest, tuple(numbers[value] for value in passed), len(unknown.sizes))


def _used(ops: Iterable[Operation]) -> Iterable[Value]:
    """Yields the values that ops, and those inside them, take."""
    for op in ops:
        yield from op.operands
        for region in op.regions:
            yield from region.free_values()


def _module(name: str, taken: Sequence[Value], ops: Sequence[Operation], returned: Sequence[Value]) -> Module:
    """Returns a module of copies of ops."""

    def body(builder: Builder, *arguments: Value) -> list[Value]:
        mapping = dict(zip(taken, arguments, strict=True))
        for op in ops:
            builder.add(op.clone(mapping))
        return [mapping[value] for value in returned]

    return Module.build(functions=[Function.build(name, [value.type for value in taken], body)])
