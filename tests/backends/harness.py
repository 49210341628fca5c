"""Runs one kernel on the CPU backend: its `in` params are the arguments, in order, all others are results."""

from __future__ import annotations

import numpy as np

from trivium.backends.cpu.client import CpuClient
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.program import Input, Launch, Output, Program, Value

CLIENT = CpuClient()


def program_of(kernel: Kernel) -> Program:
    """The program that launches `kernel` once."""
    program = Program(kernel.name)
    values = []
    for param in kernel.params:
        inputs = param.mode == "in"
        group = program.inputs if inputs else program.outputs
        value = Value(param.name, param.dtype, param.shape, (Input if inputs else Output)(len(group)))
        group.append(value)
        values.append(value)
    program.steps.append(Launch(kernel, tuple(values)))
    return program


def load(kernel: Kernel, **options: object) -> LoadedExecutable:
    return CLIENT.load(program_of(kernel), CompileOptions(**options))  # type: ignore[arg-type]


def run(kernel: Kernel, *arguments: np.ndarray, **options: object) -> np.ndarray:
    """The kernel's one result."""
    (result,) = load(kernel, **options).execute(*arguments)
    return result


def elementwise(op: str, dtypes: list[str], result: str, count: int, **attributes: object) -> Kernel:
    """A kernel that applies a scalar operation to `count` elements."""
    b = KernelBuilder(op)
    inputs = [b.input(f"x{i}", dtype, (count,)) for i, dtype in enumerate(dtypes)]
    output = b.output("y", result, (count,))
    with b.parallel(count) as (i,):
        b.store(output, b.apply(op, *(b.load(x, i) for x in inputs), **attributes), i)
    return b.build()
