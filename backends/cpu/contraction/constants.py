"""Constant operands packed once, before anything runs: the weights of a network lie in memory as the micro-kernel reads
them."""

from __future__ import annotations

from dataclasses import replace

from trivium.backends.cpu.contraction.kernels import Lowering, PackedKernel, supports
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.program import Constant, Launch, Program, Step, Switch, Value, While


def pack_constants(program: Program, target: CpuTarget) -> Program:
    """The program with every constant operand that a contraction wants packed replaced by its packed form."""
    return replace(program, steps=_packed_steps(program.steps, target))


def _packed_steps(steps: list[Step], target: CpuTarget) -> list[Step]:
    result: list[Step] = []
    for step in steps:
        match step:
            case Launch(kernel) if supports(kernel):
                step = _packed_launch(step, target)
            case While(condition, predicate, body):
                step = While(_packed_steps(condition, target), predicate, _packed_steps(body, target))
            case Switch(index, branches):
                step = Switch(index, [_packed_steps(branch, target) for branch in branches])
        result.append(step)
    return result


def _packed_launch(launch: Launch, target: CpuTarget) -> Launch:
    """Only constants that the kernel reads through one side of the contraction alone are packed."""
    kernel, contraction = launch.kernel, launch.kernel.contraction
    assert contraction is not None
    operands = {"lhs": contraction.lhs.buffer, "rhs": contraction.rhs.buffer}
    bound = dict(zip(kernel.params, launch.arguments, strict=True))
    used = [*operands.values(), *(access.buffer for access in accesses(contraction.epilogue))]
    constant = {n for n, b in operands.items() if isinstance(bound[b].storage, Constant) and used.count(b) == 1}
    plan = Lowering(kernel, target, frozenset(constant)).plan
    name = plan.packed_operand
    if name is None:
        return launch
    original = bound[operands[name]]
    assert isinstance(original.storage, Constant)
    array = plan.pack(original.storage.array)
    bound[operands[name]] = Value(f"{original.name}.packed", original.dtype, array.shape, Constant(array))
    packed = PackedKernel(kernel.name, kernel.params, kernel.body, contraction, packed=name)
    return Launch(packed, tuple(bound[param] for param in kernel.params), launch.origins)
