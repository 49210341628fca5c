"""Where the time of a run goes: for each step of a compiled program its time, its work, how close it is to the device's
limits, and the user's source line that it came from."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.timeline import Event, Limits, Timed, Timeline
from trivium.compiler.analysis import step_cost
from trivium.compiler.program import Collective, Copy, HostCall, Launch, PythonCall, Step, walk
from trivium.ir.errors import Error
from trivium.ir.files import path_of, writing

MICRO = 1e6


@dataclass(frozen=True)
class Line:
    """One step of a program; `number` is its place in the program. `seconds` is its time in a run, the median of all
    runs, and `calls` how often it ran in one; of loops with very many steps, only the first ones count. `flops` and
    `nbytes` are those of all its calls. `limit` is the least time that the device could take for them, if data came
    from memory and not from caches, and `bound` what that time is spent with: "compute" or "memory". `source` names the
    user's lines and ops."""

    name: str
    kind: str
    calls: int
    seconds: float
    flops: float
    nbytes: float
    limit: float
    bound: str
    source: str
    number: int


@dataclass(frozen=True)
class Profile:
    """The steps of a program, the slowest first. `seconds` is the time of a whole run, the median of all. `loaded` is
    what was run."""

    name: str
    seconds: float
    lines: Sequence[Line]
    timeline: Timeline
    loaded: LoadedExecutable

    def __str__(self) -> str:
        """The table."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=self._title(), expand=True)
        for header in ("step", "calls", "time", "share", "GFLOP/s", "GB/s", "of limit"):
            table.add_column(header, no_wrap=True)
        table.add_column("from", no_wrap=True, overflow="ellipsis", ratio=1)
        for line in self.lines:
            share = f"{100 * line.seconds / self.seconds:.0f} %"
            rates = (f"{amount / line.seconds / 1e9:.1f}" for amount in (line.flops, line.nbytes))
            time = f"{line.seconds * MICRO:.1f} us"
            table.add_row(line.name, str(line.calls), time, share, *rates, _near(line), escape(_places(line.source)))
        written = io.StringIO()
        console = Console(file=written, width=180, color_system=None, force_terminal=False, force_jupyter=False)
        console.print(table)
        return written.getvalue()

    def _title(self) -> str:
        limits = self.timeline.limits
        return (
            f"{self.name}: {self.seconds * MICRO:.1f} us, the median of {len(self.timeline.runs)} runs; "
            f"the device does {limits.flops / 1e9:.0f} GFLOP/s and reads {limits.nbytes / 1e9:.1f} GB/s"
        )

    def to_json(self) -> dict[str, object]:
        """Returns the table as data, times in seconds."""
        limits = asdict(self.timeline.limits)
        return {"name": self.name, "seconds": self.seconds, "limits": limits, "steps": [asdict(x) for x in self.lines]}

    def trace(self) -> dict[str, object]:
        """Returns the run of median length as a trace in Chrome's format, which Perfetto opens."""
        run = sorted(self.timeline.runs, key=lambda run: run.seconds)[len(self.timeline.runs) // 2]
        return {"displayTimeUnit": "ns", "traceEvents": [_traced(event) for event in run.events]}

    def save(self, path: str | Path, *, trace: bool = False) -> None:
        """Writes the table as JSON, or the `trace` of one run."""
        with writing(path_of(path)) as file:
            file.write(json.dumps(self.trace() if trace else self.to_json(), indent=1).encode())


def _places(source: str) -> str:
    """Returns lines of files without the files' folders, which would take up most of the table."""
    return re.sub(r"[^;,\s][^;,]*/(?=[^/;,]+:\d)|/(?=[^/;,]+:\d)", "", source)


def _near(line: Line) -> str:
    """Returns how near a step is to the device's limit. Data that comes from caches comes faster than from memory."""
    share = line.limit / line.seconds
    return f"{100 * share:.0f} % {line.bound}" if share <= 1 else "from caches"


def profile(loaded: LoadedExecutable, arguments: Sequence[object], runs: int) -> Profile:
    """See `Executable.profile`."""
    if not isinstance(runs, int) or runs < 1:
        raise Error(f"runs has {runs!r}, expected an integer of at least 1")
    if not isinstance(loaded, Timed):
        kind = loaded.device.client.platform_name
        raise Error(f"{loaded.name} runs on {kind}, which has no profiles; expected the device cpu")
    timeline = loaded.timeline(arguments, runs)
    numbers = {id(step): number for number, step in enumerate(walk(loaded.program.steps))}
    lines = sorted(_lines(timeline, numbers), key=lambda line: -line.seconds)
    return Profile(loaded.name, median(run.seconds for run in timeline.runs), lines, timeline, loaded)


def _lines(timeline: Timeline, numbers: Mapping[int, int]) -> Iterator[Line]:
    """Yields the lines of a profile; `numbers` are those of the steps, by identity."""
    steps: dict[int, tuple[Step, list[float], int]] = {}
    for number, run in enumerate(timeline.runs):
        for event in run.events:
            step, seconds, calls = steps.setdefault(id(event.step), (event.step, [0.0] * len(timeline.runs), 0))
            seconds[number] += event.end - event.start
            steps[id(step)] = step, seconds, calls + 1
    for step, seconds, calls in steps.values():
        yield _line(step, numbers[id(step)], median(seconds), -(-calls // len(timeline.runs)), timeline.limits)


def _line(step: Step, number: int, seconds: float, calls: int, limits: Limits) -> Line:
    cost = step_cost(step) * calls
    computing, moving = cost.flops / limits.flops, cost.nbytes / limits.nbytes
    return Line(
        name=_name(step),
        kind=type(step).__name__,
        calls=calls,
        seconds=max(seconds, 1e-9),  # the clock's own step
        flops=cost.flops,
        nbytes=cost.nbytes,
        limit=max(computing, moving),
        bound="compute" if computing > moving else "memory",
        source=_source(step),
        number=number,
    )


def _name(step: Step) -> str:
    match step:
        case Launch(kernel):
            return kernel.name
        case HostCall(target) | PythonCall(target):
            return target
        case Copy(source, destination):
            return f"{source.name} to {destination.name}"
        case Collective(kind):
            return type(kind).__name__
    return type(step).__name__


def _source(step: Step) -> str:
    return step.source if isinstance(step, Launch) else ""


def _traced(event: Event) -> dict[str, object]:
    return {
        "name": _name(event.step),
        "cat": type(event.step).__name__,
        "ph": "X",
        "ts": event.start * MICRO,
        "dur": (event.end - event.start) * MICRO,
        "pid": 0,
        "tid": 0,
        "args": {"from": _source(event.step)},
    }
