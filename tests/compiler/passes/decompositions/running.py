"""Helpers of the tests of decompositions: one op as a program, before and after."""

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
    """Returns a program of one op, on arguments like the arrays."""
    return module_of(lambda *given: op(*given, **attributes), *arrays)


def module_of(build: Callable[..., Op], *arrays: np.ndarray) -> Module:
    """Returns a program of the op that `build` makes from arguments like the arrays."""
    types = [type_of(array) for array in arrays]
    return Module.build(functions=[Function.build("main", types, lambda b, *given: b.add(build(*given)))])


def decomposed(module: Module) -> Module:
    """Returns the program with the op decomposed, verified."""
    after = module.clone()
    (op,) = (op for op in module.main.body.block if op is not module.main.body.terminator and op.operands)
    Decompose().run(after)
    assert _signature(op) not in map(_signature, after.main.body.block)
    after.verify()
    return after


def _signature(op: Operation) -> tuple[object, ...]:
    return op.NAME, op.operand_types, op.result_types, str(op.attributes)


def three_ways(module: Module, *arrays: np.ndarray) -> list[np.ndarray]:
    """Returns the only result of the op, of its decomposition, and of machine code."""
    with np.errstate(all="ignore"):
        found = [evaluate(each, *arrays)[0] for each in (module, decomposed(module))]
    return [*found, trivium.compile(module)(*arrays)[0]]
