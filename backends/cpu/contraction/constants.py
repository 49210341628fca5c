"""Constant operands that are packed once, before anything runs: a network's weights are laid out in memory in the order
in which the micro-kernel reads them. The program keeps its own constants; the packed ones are bound in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivium.backends.cpu.contraction.kernels import Lowering, supports
from trivium.backends.cpu.contraction.underflow import is_large
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.artifact import Packing
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.program import Array, Constant, Launch, Program, walk


@dataclass(frozen=True, eq=False)
class PackedConstant(Constant):
    """A constant that is passed packed; `array` is the constant as the program has it. `finite`: it is known to have no
    infinities and no NaNs."""

    packing: Packing | None = None
    finite: bool = False


@dataclass(frozen=True)
class PackedLaunch:
    """A launch whose contraction reads one operand ("lhs" or "rhs") in packed form: `arguments` has the packed constant
    in place of the program's; `finite` is what is known of that one."""

    operand: str
    arguments: tuple[Array, ...]
    finite: bool


def packed_launches(program: Program, target: CpuTarget) -> dict[Launch, PackedLaunch]:
    """Returns every launch with a constant operand that its contraction reads packed."""
    packed: dict[tuple[Array, str], Array] = {}
    found = {}
    for step in walk(program.steps):
        if isinstance(step, Launch) and supports(step.kernel):
            launch = _packed(step, target, packed)
            if launch is not None:
                found[step] = launch
    return found


def _packed(launch: Launch, target: CpuTarget, packed: dict[tuple[Array, str], Array]) -> PackedLaunch | None:
    """Packs only constants that the kernel reads through one side of the contraction alone; for launches of equal
    kernels only once, in `packed`."""
    kernel, contraction = launch.kernel, launch.kernel.contraction
    assert contraction is not None
    operands = {"lhs": contraction.lhs.buffer, "rhs": contraction.rhs.buffer}
    bound = dict(zip(kernel.params, launch.arguments, strict=True))
    used = [*operands.values(), *(access.buffer for access in accesses(contraction.epilogue))]
    constant = {n for n, b in operands.items() if isinstance(bound[b].storage, Constant) and used.count(b) == 1}
    if not constant:
        return None
    lowering = Lowering(kernel, target, frozenset(constant))
    name = lowering.plan.packed_operand
    if name is None:
        return None
    original = bound[operands[name]]
    assert isinstance(original.storage, Constant)
    matrix = lowering.tiling.matrix
    if matrix is not None and matrix.operands == "bf16" and not is_large(original.storage.array):
        return None
    key = original, kernel.digest()
    if key not in packed:
        packing = lowering.plan.packing(storage_bytes(operands[name].dtype))
        # Only where lhs has padding does it matter.
        finite = bool(lowering.plan.problem.lhs.windows) and bool(np.isfinite(original.storage.array).all())
        storage = PackedConstant(original.storage.array, original.storage.origin, packing, finite)
        shape = (packing.nbytes // storage_bytes(original.dtype),)
        packed[key] = Array(f"{original.name}.packed", original.dtype, shape, storage)
    bound[operands[name]] = packed[key]
    storage = packed[key].storage
    assert isinstance(storage, PackedConstant)
    return PackedLaunch(name, tuple(bound[param] for param in kernel.params), storage.finite)
