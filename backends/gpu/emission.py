"""Builds the module of a program: a function for each kernel that is launched alone, and for each batch of kernels that
share a launch. Equal kernels, and equal batches, share one function."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import llvmlite.ir as ll

from trivium.backends.gpu.batches import Batch
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.emit import emit_bodies, emit_kernel
from trivium.backends.gpu.plan import Launched, Work
from trivium.backends.gpu.schedule import Grid, choose, grid
from trivium.backends.gpu.shared_launch import Bodies, Group, emit_shared
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.kernel import Kernel
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.program import Array, Launch, Step
from trivium.compiler.schedule import Schedule


@dataclass
class Emitted:
    """A module as text, what the device does in the place of each step, and the bytes that the largest launch needs in
    the workspace, and the counters."""

    text: str = ""
    work: dict[Step, Work] = field(default_factory=dict)
    workspace: int = 0
    counters: int = 0
    schedules: dict[str, Schedule] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """A kernel with its schedule; `digest` is that of all equal kernels."""

    kernel: Kernel
    digest: str
    analysis: Analysis
    schedule: Schedule
    grid: Grid


class Choices:
    """The schedules of kernels: equal ones have the same."""

    def __init__(self, target: GpuTarget):
        self.target = target
        self._known: dict[Kernel, Choice] = {}
        self._equal: dict[str, Choice] = {}

    def of(self, kernel: Kernel) -> Choice:
        if kernel not in self._known:
            digest = kernel.digest()
            if digest not in self._equal:
                self._equal[digest] = self._chosen(kernel, digest)
            self._known[kernel] = self._equal[digest]
        return self._known[kernel]

    def grid(self, kernel: Kernel) -> Grid:
        return self.of(kernel).grid

    def _chosen(self, kernel: Kernel, digest: str) -> Choice:
        analysis = Analysis(kernel)
        schedule = choose(kernel, self.target, analysis)
        return Choice(kernel, digest, analysis, schedule, grid(kernel, schedule))


class Emission:
    """The module of a program under construction."""

    def __init__(self, name: str, dialect: Dialect, target: GpuTarget, fast: bool):
        self.emitted = Emitted()
        self._module = ll.Module(name)
        self._module.triple = target.triple
        self._dialect, self._target, self._fast = dialect, target, fast
        self._choices = Choices(target)
        self._kernels: dict[str, tuple[Launched, ...]] = {}
        self._bodies: dict[tuple[str, int], Bodies] = {}
        self._shared: dict[Hashable, tuple[Launched, ...]] = {}

    def grid(self, kernel: Kernel) -> Grid:
        """Returns the threads of a kernel that has a launch for itself."""
        return self._choices.grid(kernel)

    def launch(self, step: Launch) -> None:
        """Emits a launch of one kernel."""
        choice = self._choices.of(step.kernel)
        if choice.digest not in self._kernels:
            self._kernels[choice.digest] = self._kernel(choice)
        self.emitted.work[step] = Work(self._kernels[choice.digest], step.arguments, step.source)

    def share(self, steps: Sequence[Step], batch: Batch, size: int) -> None:
        """Emits the launch of a batch, with blocks of `size` threads, in the place of the first of `steps`."""
        arrays = {array: number for number, array in enumerate(arrays_of(batch))}
        groups: dict[str, list[tuple[int, ...]]] = {}
        for one in batch:
            digest = self._choices.of(one.kernel).digest
            groups.setdefault(digest, []).append(tuple(arrays[array] for array in one.arguments))
        key = size, tuple((digest, tuple(members)) for digest, members in groups.items())
        if key not in self._shared:
            kernels = {self._choices.of(one.kernel).digest: one.kernel for one in batch}
            made = [Group(self._body(kernels[digest], size), tuple(members)) for digest, members in groups.items()]
            name = f"k{len(self._module.globals)}_{_plain(batch[0].kernel.name)}_and_others"
            operands = self._module, name, made, len(arrays), size, self._dialect, self._target
            self._shared[key], *needs = emit_shared(*operands)
            self._need(*needs)
        self.emitted.work |= dict.fromkeys(steps, Work())
        self.emitted.work[steps[0]] = Work(self._shared[key], tuple(arrays), _origin(batch))

    def finished(self) -> Emitted:
        """Returns what was emitted."""
        self.emitted.text = self._dialect.text(self._module)
        return self.emitted

    def _kernel(self, choice: Choice) -> tuple[Launched, ...]:
        name, size = self._named("k", choice), WorkspaceSize(self._target.stack_bytes)
        operands = choice.kernel, choice.schedule, self._dialect, self._target, choice.analysis, size, self._fast
        launched = emit_kernel(self._module, name, *operands)
        self._need(size.nbytes, choice.grid.counters)
        return launched

    def _need(self, workspace: int, counters: int) -> None:
        self.emitted.workspace = max(self.emitted.workspace, workspace)
        self.emitted.counters = max(self.emitted.counters, counters)

    def _body(self, kernel: Kernel, size: int) -> Bodies:
        choice = self._choices.of(kernel)
        key = choice.digest, size
        if key not in self._bodies:
            operands = choice.kernel, choice.schedule, self._dialect, self._target, choice.analysis, size, self._fast
            self._bodies[key] = emit_bodies(self._module, self._named("b", choice), *operands)
        return self._bodies[key]

    def _named(self, kind: str, choice: Choice) -> str:
        name = f"{kind}{len(self.emitted.schedules)}_{_plain(choice.kernel.name)}"
        self.emitted.schedules[name] = choice.schedule
        return name


def _plain(name: str) -> str:
    return re.sub("[^A-Za-z0-9_]", "_", name)


def _origin(batch: Batch) -> str:
    """Returns where the first of a batch's kernels comes from, and how many others there are."""
    return f"{batch[0].source} (and {len(batch) - 1} other kernels)".lstrip()


def arrays_of(batch: Batch) -> list[Array]:
    """Returns the arrays that a batch touches, each once."""
    return list(dict.fromkeys(array for one in batch for array in one.arguments))
