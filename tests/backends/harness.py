"""Runs one kernel on the CPU backend: its `in` params are the arguments, in order, all others are results. Also steps
that call Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.backends.cpu.client import CpuClient
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel import Kernel, KernelBuilder, numpy_dtype
from trivium.compiler.program import Array, Input, Launch, Output, Program, PythonCall
from trivium.ir.builder import Builder
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.func import Function, Module
from trivium.ir.ops import CustomCall
from trivium.ir.text import print_module
from trivium.ir.types import type_of

CLIENT = CpuClient()


def program_of(kernel: Kernel) -> Program:
    """Returns the program that launches `kernel` once."""
    program = Program(kernel.name)
    values = []
    for param in kernel.params:
        inputs = param.mode == "in"
        group = program.inputs if inputs else program.outputs
        value = Array(param.name, param.dtype, param.shape, (Input if inputs else Output)(len(group)))
        group.append(value)
        values.append(value)
    program.steps.append(Launch(kernel, tuple(values)))
    return program


def python_call(function: Callable[..., Any], arguments: Sequence[Array], results: Sequence[Array]) -> PythonCall:
    """Returns a step that calls a function on the arguments' arrays, which returns the results'."""
    target = f"test.{len(CUSTOM_CALLS)}"
    register_custom_call(target, evaluate=lambda op, *arrays: function(*arrays))
    types, kinds = (
        [type_of(np.empty(v.shape, numpy_dtype(v.dtype))) for v in values] for values in (arguments, results)
    )

    def main(builder: Builder, *given: Any) -> Any:
        return builder.add(CustomCall(given, target, results=kinds))

    module = Module.build(functions=[Function.build("main", types, main)])
    return PythonCall(target, print_module(module), tuple(arguments), tuple(results))


def load(kernel: Kernel, **options: object) -> LoadedExecutable:
    return CLIENT.load_program(program_of(kernel), CompileOptions(**options))  # type: ignore[arg-type]


def run(kernel: Kernel, *arguments: np.ndarray, **options: object) -> np.ndarray:
    """Returns the kernel's only result."""
    (result,) = load(kernel, **options).execute(*arguments)
    return result


def elementwise(op: str, dtypes: list[str], result: str, count: int, **attributes: object) -> Kernel:
    """Returns a kernel that applies a scalar operation to `count` elements."""
    b = KernelBuilder(op)
    inputs = [b.input(f"x{i}", dtype, (count,)) for i, dtype in enumerate(dtypes)]
    output = b.output("y", result, (count,))
    with b.parallel(count) as (i,):
        b.store(output, b.apply(op, *(b.load(x, i) for x in inputs), **attributes), i)
    return b.build()
