"""Constant operands packed once, before anything runs: the weights of a network lie in memory as the micro-kernel reads
them. The program keeps its own constants; what is packed is bound in their place."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.backends.cpu.contraction.kernels import Lowering, supports
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.program import Constant, Launch, Program, Value, walk


@dataclass(frozen=True)
class Packing:
    """A launch whose contraction reads one operand ("lhs" or "rhs") in packed form: `arguments` has that instead of the
    program's constant."""

    operand: str
    arguments: tuple[Value, ...]


def packings(program: Program, target: CpuTarget) -> dict[Launch, Packing]:
    """Of every launch with a constant operand that its contraction wants packed."""
    packed: dict[tuple[Value, str], Value] = {}
    found = {}
    for step in walk(program.steps):
        if isinstance(step, Launch) and supports(step.kernel):
            packing = _packing(step, target, packed)
            if packing is not None:
                found[step] = packing
    return found


def _packing(launch: Launch, target: CpuTarget, packed: dict[tuple[Value, str], Value]) -> Packing | None:
    """Only constants that the kernel reads through one side of the contraction alone are packed; for launches of equal
    kernels only once, in `packed`."""
    kernel, contraction = launch.kernel, launch.kernel.contraction
    assert contraction is not None
    operands = {"lhs": contraction.lhs.buffer, "rhs": contraction.rhs.buffer}
    bound = dict(zip(kernel.params, launch.arguments, strict=True))
    used = [*operands.values(), *(access.buffer for access in accesses(contraction.epilogue))]
    constant = {n for n, b in operands.items() if isinstance(bound[b].storage, Constant) and used.count(b) == 1}
    if not constant:
        return None
    plan = Lowering(kernel, target, frozenset(constant)).plan
    name = plan.packed_operand
    if name is None:
        return None
    original = bound[operands[name]]
    assert isinstance(original.storage, Constant)
    key = original, kernel.digest()
    if key not in packed:
        array = plan.pack(original.storage.array)
        packed[key] = Value(f"{original.name}.packed", original.dtype, array.shape, Constant(array))
    bound[operands[name]] = packed[key]
    return Packing(name, tuple(bound[param] for param in kernel.params))
