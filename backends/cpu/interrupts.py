"""Where a program asks whether a signal has come. Python handles signals only between instructions of its own, so a
long run would not hear Ctrl-C before its end. Asking takes some 10 ns, more than a turn of a small loop; so the work
between two questions is estimated, in scalar operations, and a program of little work never asks."""

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
"""Operations after which to ask: 10 us of the fastest ones, and 30 ms of the slowest, accesses to far memory."""

STEP = 16
"""What a step costs beside its operations."""


class Interrupts:
    """Emits the questions of one entry function at the builder's position. An answer other than 0 ends the run."""

    def __init__(self, builder: ll.IRBuilder, code: Code):
        self._builder = builder
        self._code = code
        self._since = 0  # work since the last question, on the way that leads here
        self._turns: ll.Value | None = None  # work of loop turns that were not followed by a question
        self._costs: dict[Kernel, int] = {}

    def before(self, step: Step) -> None:
        """Asks, if there was enough work, and takes note of the step's own."""
        if self._since >= ENOUGH:
            self._ask()
        self._since += STEP
        if not isinstance(step, Switch):  # the branches count their own steps
            self._since += self._operations(step)

    def turn(self, loop: While) -> None:
        """Asks at a turn of a loop, if its turns since the last question were enough work."""
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
        """Emits alternatives; what follows them counts the work of the longest."""
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
        """Of one pass through the steps, without the loops among them, which ask by themselves."""
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
        return ENOUGH  # nobody knows how long the host takes


def _operations(block: Block) -> int:
    """Scalar operations that a block of a kernel takes; ENOUGH where a loop's extent is not known."""
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
