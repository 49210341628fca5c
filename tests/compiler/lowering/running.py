"""Compiles and runs small programs, for the tests of lowering."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tests.compiler.targets import TARGET
from trivium.backends.cpu.client import CpuClient
from trivium.compiler.driver import CompileOptions
from trivium.compiler.lower import lower
from trivium.compiler.program import Program
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType


@cache
def client() -> CpuClient:
    return CpuClient()


def program_of(types: list[TensorType], body: Callable) -> Module:
    """Returns a module of one function."""
    return Module.build(functions=[Function.build("main", types, body)])


def run(program: Program, arguments: list[np.ndarray]) -> list[np.ndarray]:
    return client().load_program(program, CompileOptions(threads=1)).execute(*arguments)


def expect_same(
    module: Module, arguments: list[np.ndarray], tolerance: float = 2e-5, target: Target = TARGET
) -> Program:
    """Expects compiled results to equal interpreted ones, up to rounding. Returns the program."""
    program = lower(module, target)
    with np.errstate(all="ignore"):
        expected = evaluate(module, *arguments)
    for result, wanted in zip(run(program, arguments), expected, strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        finite = wanted[np.isfinite(wanted)] if wanted.dtype.kind == "f" else wanted
        scale = float(np.abs(finite).max(initial=1e-3)) if wanted.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(result, wanted, rtol=5 * tolerance, atol=tolerance * scale)
    return program


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def whole(b, value: int):
    return b.add(ops.Constant(np.int32(value)))


def count_up(b, limit, start, values, body):
    """for i from `start` below `limit`: values = body(i, values)"""
    types = [start.type, *(value.type for value in values)]
    cond = region(types, lambda b, i, *rest: b.add(ops.Compare(i, limit, ops.ComparisonDirection.LT)))

    def step(b, i, *rest):
        return [b.add(ops.Add(i, whole(b, 1))), *body(b, i, *rest)]

    return b.add(ops.While([start, *values], cond, region(types, step)))[1:]
