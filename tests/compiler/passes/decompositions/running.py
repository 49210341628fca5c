"""What the tests of decompositions share: one op as a program, before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import trivium
from trivium.compiler.passes.decompose import Decompose
from trivium.ir.core import Operation
from trivium.ir.declare import Op
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import type_of


def program(op: type[Op], *arrays: np.ndarray, **attributes: Any) -> Module:
    """A program of one op, of arguments like the arrays."""
    return module_of(lambda *given: op(*given, **attributes), *arrays)


def module_of(build: Callable[..., Op], *arrays: np.ndarray) -> Module:
    """A program of the one op that `build` makes of arguments like the arrays."""
    types = [type_of(array) for array in arrays]
    return Module.build(functions=[Function.build("main", types, lambda b, *given: b.add(build(*given)))])


def decomposed(module: Module) -> Module:
    """The program without the op, verified."""
    after = module.clone()
    (op,) = (op for op in module.main.body.block if op is not module.main.body.terminator and op.operands)
    Decompose().run(after)
    assert _signature(op) not in map(_signature, after.main.body.block)
    after.verify()
    return after


def _signature(op: Operation) -> tuple[object, ...]:
    return op.NAME, op.operand_types, op.result_types


def three_ways(module: Module, *arrays: np.ndarray) -> list[np.ndarray]:
    """The one result: of the op, of what it becomes, and of machine code."""
    with np.errstate(all="ignore"):
        found = [evaluate(each, *arrays)[0] for each in (module, decomposed(module))]
    return [*found, trivium.compile(module)(*arrays)[0]]
