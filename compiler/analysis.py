"""The work and memory traffic of one run of a program, counted from its kernels and steps: PJRT's cost analysis. A
switch counts as its most expensive branch. The body of a loop counts once if its number of iterations is only known at
run time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from trivium.compiler.kernel import (
    Block,
    Contraction,
    If,
    Instruction,
    Kernel,
    Loop,
    Register,
    SortKeys,
    Store,
    Update,
    walk,
)
from trivium.compiler.kernel.ops import flops, is_transcendental
from trivium.compiler.kernel.structure import Apply, While
from trivium.compiler.program import Array, Collective, Copy, HostCall, Launch, Program, PythonCall, Step, Switch
from trivium.compiler.program import While as ProgramWhile


@dataclass(frozen=True)
class Cost:
    """`flops`: scalar operations of any element type, except those on indices; a fused multiply-add counts twice.
    `transcendentals`: functions such as the exponential, which do not count as flops. `nbytes`: the bytes that steps
    read from their operands and write to their results, ignoring caches. `avoidable`: those of the flops that are in
    loops which end at run time (`kernel.structure.End`), and that smaller sizes do not take."""

    flops: float = 0.0
    transcendentals: float = 0.0
    nbytes: float = 0.0
    avoidable: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, _numbers(self), _numbers(other)))

    def __mul__(self, times: int) -> Cost:
        return Cost(*(number * times for number in _numbers(self)))


_numbers: Callable[[Cost], tuple[float, ...]] = operator.attrgetter(*(field.name for field in fields(Cost)))


def program_cost(program: Program) -> Cost:
    """Returns the cost of one run of a program."""
    kernels = {kernel: kernel_cost(kernel) for kernel in program.kernels()}
    return _steps(program.steps, kernels)


def step_cost(step: Step) -> Cost:
    """Returns the cost of one execution of a step."""
    return _step(step, {step.kernel: kernel_cost(step.kernel)} if isinstance(step, Launch) else {})


def kernel_cost(kernel: Kernel) -> Cost:
    """Returns the operations of one launch. Its bytes are not included: they depend on the launch's arguments."""
    if kernel.contraction is not None:
        cost = _contraction(kernel.contraction)
    else:
        cost = _block(kernel.body, _computing(kernel.body))
    ends = any(isinstance(i, Loop) and i.ends for i in kernel.body.instructions)
    return replace(cost, avoidable=cost.flops) if ends else cost


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


def _nbytes(values: Iterable[Array]) -> int:
    return sum(value.nbytes for value in values)


def _contraction(contraction: Contraction) -> Cost:
    """Counts two operations for each product that is added up, and the epilogue for each sum."""
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
        case SortKeys(_, _, count):
            return Cost(flops=count * (count - 1).bit_length())
        case If(_, then, otherwise):
            return _most(_block(block, computing) for block in (then, otherwise))
        case While(_, condition, body):
            return _block(condition, computing) + _block(body, computing)
    return Cost()


def _computing(block: Block) -> Callable[[Apply], bool]:
    """Returns a predicate: whether an operation contributes to the values that the block stores or branches on. The
    others only compute addresses."""
    instructions = list(walk(block))
    needed: set[Register] = set(block.yields)
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
