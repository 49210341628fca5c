"""What a run of a program does and needs, counted from its kernels and steps: PJRT's cost analysis. Branches count as
their most expensive one, bodies of loops whose turns only a run knows as one turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Block, Contraction, If, Instruction, Kernel, Loop, Store, Update, Value, walk
from trivium.compiler.kernel.ops import flops, is_transcendental
from trivium.compiler.kernel.structure import Apply, While
from trivium.compiler.program import Collective, Copy, HostCall, Launch, Program, PythonCall, Step, Switch
from trivium.compiler.program import Value as ProgramValue
from trivium.compiler.program import While as ProgramWhile


@dataclass(frozen=True)
class Cost:
    """`flops`: scalar operations, of any element type, except those on indices; a fused multiply-add counts twice.
    `transcendentals`: functions such as exponential, which do not count as flops. `nbytes`: what steps read of their
    operands and write of their results, caches aside."""

    flops: float = 0.0
    transcendentals: float = 0.0
    nbytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.transcendentals + other.transcendentals, self.nbytes + other.nbytes)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.flops * times, self.transcendentals * times, self.nbytes * times)


def program_cost(program: Program) -> Cost:
    """What one run of a program does."""
    kernels = {kernel: kernel_cost(kernel) for kernel in program.kernels()}
    return _steps(program.steps, kernels)


def kernel_cost(kernel: Kernel) -> Cost:
    """The operations of one launch; its bytes are those of the values that it is launched on."""
    if kernel.contraction is not None:
        return _contraction(kernel.contraction)
    return _block(kernel.body, _computing(kernel.body))


def _steps(steps: Sequence[Step], kernels: dict[Kernel, Cost]) -> Cost:
    return _sum(_step(step, kernels) for step in steps)


def _step(step: Step, kernels: dict[Kernel, Cost]) -> Cost:
    match step:
        case Launch(kernel, arguments):
            moved = sum(
                argument.nbytes * (2 if param.mode == "inout" else 1)
                for param, argument in zip(kernel.params, arguments, strict=True)
            )
            return kernels[kernel] + Cost(nbytes=moved)
        case Copy(source):
            return Cost(nbytes=2 * source.nbytes)
        case Collective(_, _, source, destination):
            return Cost(nbytes=source.nbytes + destination.nbytes)
        case HostCall(_, _, arguments, results) | PythonCall(_, _, arguments, results):
            return Cost(nbytes=_nbytes((*arguments, *results)))
        case Switch(_, branches):
            return _most(_steps(branch, kernels) for branch in branches)
        case ProgramWhile(condition, _, body):
            return _steps(condition, kernels) + _steps(body, kernels)


def _nbytes(values: Iterable[ProgramValue]) -> int:
    return sum(value.nbytes for value in values)


def _contraction(contraction: Contraction) -> Cost:
    """Two operations for each product that is added up, and the epilogue for each sum."""
    products = math.prod(loop.extent for loop in contraction.loops)
    sums = math.prod(loop.extent for loop in contraction.loops if loop.role != "k")
    return Cost(flops=2 * products) + _block(contraction.epilogue, _computing(contraction.epilogue)) * sums


def _block(block: Block, computing: Callable[[Apply], bool]) -> Cost:
    return _sum(_instruction(instruction, computing) for instruction in block.instructions)


def _instruction(instruction: Instruction, computing: Callable[[Apply], bool]) -> Cost:
    match instruction:
        case Apply(op):
            if not computing(instruction):
                return Cost()
            return Cost(transcendentals=1) if is_transcendental(op) else Cost(flops=flops(op))
        case Loop():
            turns = math.prod(extent if isinstance(extent, int) else 1 for extent in instruction.extents)
            combiner = Cost()
            if isinstance(instruction.combiner, Block):
                combiner = _block(instruction.combiner, computing)
            elif instruction.combiner is not None:
                combiner = Cost(flops=len(instruction.inits))
            return (_block(instruction.body, computing) + combiner) * turns
        case Update(_, values, combiner):
            return _block(combiner, computing) if isinstance(combiner, Block) else Cost(flops=len(values))
        case If(_, then, otherwise):
            return _most(_block(block, computing) for block in (then, otherwise))
        case While(_, condition, body):
            return _block(condition, computing) + _block(body, computing)
    return Cost()


def _computing(block: Block) -> Callable[[Apply], bool]:
    """Which operations compute what the block stores, or decides on; the others only say where elements are."""
    instructions = list(walk(block))
    needed: set[Value] = set(block.yields)
    for instruction in instructions:
        needed.update(value for nested in instruction.blocks for value in nested.yields)
        match instruction:
            case Store(_, value):
                needed.add(value)
            case Update(_, values):
                needed.update(values)
            case If(condition):
                needed.add(condition)
            case Loop() | While():
                needed.update(instruction.inits)
    for instruction in reversed(instructions):
        if isinstance(instruction, Apply) and instruction.result in needed:
            needed.update(instruction.arguments)
    return lambda instruction: instruction.result in needed


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())


def _most(costs: Iterable[Cost]) -> Cost:
    return max(costs, key=lambda cost: (cost.flops + cost.transcendentals, cost.nbytes), default=Cost())
