"""Reduces a failing program: results, ops, arguments and extents are removed one by one, as long as the program still
fails in the same way."""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from trivium.ir import ops
from trivium.ir.attributes import Dictionary, Integer
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.text import parse
from trivium.ir.types import I64, TensorType

SECONDS = 90.0
CRASH = "crash"

Judge = Callable[[Module], str | None]
"""Returns the kind of a program's failure; `None` if it does not fail, or if it cannot be judged."""

Change = Callable[[Function, int], bool]
"""Changes a function at its op or result of that number; returns whether it did."""


def apart(judge: Judge) -> Judge:
    """Returns a judge that works in a separate process, which the program may end: then its kind is `CRASH`."""

    def judged(module: Module) -> str | None:
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=lambda: sender.send(judge(module)), daemon=True)
        process.start()
        sender.close()
        try:
            return receiver.recv() if receiver.poll(SECONDS) else None
        except EOFError:
            return CRASH
        finally:
            process.kill()
            process.join()

    return judged


def shrink(module: Module, key: str, judge: Judge, seed: str, seconds: float = SECONDS) -> Module:
    """Returns the smallest program found that fails in the same way as `module`. Results that become arguments get a
    number as their attribute `seed`, from which `judge` computes their values."""
    end, progress = time.monotonic() + seconds, True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in _smaller(module, seed):
            if time.monotonic() > end:
                break
            if judge(smaller) == key:
                module, progress = smaller, True
                break
    return module


def _smaller(module: Module, seed: str) -> Iterator[Module]:
    """Yields programs that are a little smaller: the largest steps first."""
    count = len(list(module.main.body.block)) - 1
    changes: list[tuple[Change, Iterable[int]]] = [
        (_only_result, range(len(module.main.returned))),
        (_result_at, reversed(range(count))),
    ]
    changes += [(change, range(count)) for change in (partial(_cut, seed=seed), _forwarded, _zeroed)]
    for change, indices in changes:
        for index in indices:
            copy = module.clone()
            if change(copy.main, index):
                _tidy(copy.main)
                yield copy
    yield from _with_smaller_extents(module)


def _tidy(main: Function) -> None:
    """Removes ops and arguments that are not used."""
    block = main.body.block
    for op in reversed(block):
        if op is not block.last and not op.is_used:
            op.erase()
    attributes = list(main.arg_attrs or [Dictionary()] * len(block.arguments))
    for index in reversed(range(len(block.arguments))):
        if not block.arguments[index].uses:
            block.erase_argument(index)
            del attributes[index]
    main.attributes["arg_attrs"] = tuple(attributes)
    main.refresh_type()


def _at(main: Function, index: int) -> Operation:
    return list(main.body.block)[index]


def _return(main: Function, *values: Value) -> None:
    block = main.body.block
    kind = type(block.terminator)
    block.terminator.erase()
    Builder(block).add(kind(list(values)))


def _only_result(main: Function, index: int) -> bool:
    several = len(main.returned) > 1
    if several:
        _return(main, main.returned[index])
    return several


def _result_at(main: Function, index: int) -> bool:
    """Ends the program after an op, unless its results, or some of them, are all that is returned already."""
    results = _at(main, index).results
    if set(main.returned) <= set(results):
        return False
    _return(main, *results)
    return True


def _cut(main: Function, index: int, seed: str) -> bool:
    """Turns the results of an op into arguments."""
    op, block = _at(main, index), main.body.block
    attributes = list(main.arg_attrs or [Dictionary()] * len(block.arguments))
    for result in op.results:
        result.replace_all_uses_with(block.add_argument(result.type))
        attributes.append(Dictionary({seed: Integer(len(attributes), I64)}))
    main.attributes["arg_attrs"] = tuple(attributes)
    return True


def _forwarded(main: Function, index: int) -> bool:
    """Replaces the result of an op by one of its operands."""
    op = _at(main, index)
    same = [operand for operand in op.operands if operand.type is op.results[0].type]
    if same:
        op.results[0].replace_all_uses_with(same[0])
    return bool(same)


def _zeroed(main: Function, index: int) -> bool:
    op = _at(main, index)
    if isinstance(op, ops.Constant):
        return False
    for result in op.results:
        if isinstance(result.type, TensorType):
            zero = ops.Constant(np.zeros(result.type.static_shape, result.type.dtype))
            result.replace_all_uses_with(Builder.in_front_of(op).add(zero))
    return True


def _with_smaller_extents(module: Module) -> Iterator[Module]:
    """Replaces one number of the text, wherever it is an extent or in a list, by a smaller one."""
    text = str(module)
    extents = {int(n) for dims in re.findall(r"tensor<((?:\d+x)+)", text) for n in dims.split("x") if n}
    for extent in sorted(extents, reverse=True):
        for less in dict.fromkeys((1, 2, extent // 2, extent - 1)):
            if not 0 < less < extent:
                continue
            smaller = re.sub(rf"(?<=[<x]){extent}(?=x)", str(less), text)
            for candidate in (smaller, re.sub(rf"(?<=[\[:, ]){extent}(?=[\],:])", str(less), smaller)):
                try:
                    yield parse(candidate)
                except Error:
                    continue
