"""The points where a program checks whether a signal has arrived. Python handles signals only between its own
instructions, so a long run would not notice Ctrl-C before it ends. A check takes about 10 ns, more than an iteration of
a small loop; so the work between two checks is estimated, in scalar operations, and a program with little work never
checks."""

from __future__ import annotations

import math
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import I32, I64, Code, stack_slot
from trivium.compiler.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Instruction, Loop
from trivium.compiler.kernel.structure import While as KernelWhile
from trivium.compiler.program import Copy, Launch, Step, Switch, While

CHECK = "trivium_check_signals"

ENOUGH = 1 << 18
"""Operations after which to check: 10 us of the fastest ones, and 30 ms of the slowest, accesses to far memory."""

STEP = 16
"""The cost of a step besides its operations."""


class Interrupts:
    """Emits the checks of one entry function at the builder's position. A result other than 0 ends the run."""

    def __init__(self, builder: ll.IRBuilder, code: Code):
        self._builder = builder
        self._code = code
        self._since = 0  # work since the last check, on the path that leads here
        self._turns: ll.Value | None = None  # work of loop iterations that no check followed
        self._costs: dict[Kernel, int] = {}

    def before(self, step: Step) -> None:
        """Emits a check if there was enough work, and adds the step's own work."""
        if self._since >= ENOUGH:
            self._ask()
        self._since += STEP
        if not isinstance(step, Switch):  # the branches count their own steps
            self._since += self._operations(step)

    def turn(self, loop: While) -> None:
        """Emits a check in an iteration of a loop, if the iterations since the last check were enough work."""
        work = self._work([*loop.condition, *loop.body])
        if work >= ENOUGH:
            self._ask()
            return
        builder, slot = self._builder, self._slot()
        total = builder.add(builder.load(slot, typ=I64), I64(work))
        builder.store(total, slot)
        with builder.if_then(builder.icmp_unsigned(">=", total, I64(ENOUGH)), likely=False):
            builder.store(I64(0), slot)
            self._ask()
        self._since = 0

    def branches(self, emitters: list[Callable[[], None]]) -> None:
        """Emits alternatives; the code after them counts the work of the longest."""
        before, after = self._since, []
        for emit in emitters:
            self._since = before
            emit()
            after.append(self._since)
        self._since = max(after, default=before)

    def _ask(self) -> None:
        builder = self._builder
        status = self._code.call(CHECK, I32)
        with builder.if_then(builder.icmp_unsigned("!=", status, I32(0)), likely=False):
            builder.ret(status)
        self._since = 0

    def _slot(self) -> ll.Value:
        if self._turns is None:
            self._turns = stack_slot(self._builder, I64)
            with self._builder.goto_entry_block():
                self._builder.store(I64(0), self._turns)
        return self._turns

    def _work(self, steps: list[Step]) -> int:
        """Returns the work of one pass through the steps, without the loops among them, which have their own checks."""
        return STEP * len(steps) + sum(map(self._operations, steps))

    def _operations(self, step: Step) -> int:
        match step:
            case Launch(kernel):
                if kernel not in self._costs:
                    self._costs[kernel] = _operations(kernel.body)
                return self._costs[kernel]
            case Copy(source):
                return source.nbytes // 8
            case Switch(_, branches):
                return max(map(self._work, branches), default=0)
            case While():
                return 0
        return ENOUGH  # how long the host takes is unknown


def _operations(block: Block) -> int:
    """Returns the scalar operations that a block of a kernel takes; ENOUGH if a loop's extent is not known."""
    return sum(map(_cost, block.instructions))


def _cost(instruction: Instruction) -> int:
    if isinstance(instruction, KernelWhile):
        return ENOUGH
    inside = sum(map(_operations, instruction.blocks))
    if not isinstance(instruction, Loop):
        return 1 + inside
    extents = [extent for extent in instruction.extents if isinstance(extent, int)]
    if len(extents) < len(instruction.extents):
        return ENOUGH
    return 1 + math.prod(extents) * max(1, inside)
