"""The order of steps for devices that run several kernels in one launch (`Target.launch_kind`): steps that do not
depend on one another become neighbours, if the order of lowering has separated them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from trivium.compiler.kernel import Kernel
from trivium.compiler.program import Array, Launch, Step, nested, operands, reads, writes

Kind = Callable[[Kernel], Hashable]

PATIENCE = 8
"""The number of batches that a launch waits for others of its kind. What it reads stays in memory as long."""


def batched(steps: Sequence[Step], kind: Kind) -> list[list[Step]]:
    """Returns the steps in batches, in an order that computes the same. The steps of a batch do not depend on one
    another, and their kernels have the same kind, which is None for a kernel that is alone in its batch. Only launches
    move: other steps stay between the ones before and after them."""
    batches: list[list[Step]] = []
    segment: list[Launch] = []
    for step in steps:
        if isinstance(step, Launch):
            segment.append(step)
            continue
        batches += [*_Segment(segment, kind).batches(), [step]]
        segment = []
    return [*batches, *_Segment(segment, kind).batches()]


class _Segment:
    """Launches between two other steps."""

    def __init__(self, launches: Sequence[Launch], kind: Kind):
        self._launches = launches
        self._after = dependents(launches)
        self._waits = dict.fromkeys(launches, 0)
        kernels = {launch.kernel.digest(): launch.kernel for launch in launches}
        kinds = {digest: kind(kernel) for digest, kernel in kernels.items()}
        self._kinds = {launch: kinds[launch.kernel.digest()] for launch in launches}
        for following in self._after.values():
            for launch in following:
                self._waits[launch] += 1
        self._urgency: dict[Launch, int] = {}
        for launch in reversed(launches):
            self._urgency[launch] = max((self._urgency[one] + 1 for one in self._after[launch]), default=0)

    def batches(self) -> Iterator[list[Step]]:
        """Yields, again and again, the launch from which the longest chain of dependent ones leads to the end, or one
        that has waited too long, with all others of its kind that could run as well."""
        ready = {launch: 0 for launch in self._launches if not self._waits[launch]}
        turn = 0
        while ready:
            turn += 1
            late = [launch for launch, since in ready.items() if turn - since > PATIENCE]
            first = max(late or ready, key=self._urgency.__getitem__)
            kind = self._kinds[first]
            batch = [one for one in ready if one is first or (kind is not None and self._kinds[one] == kind)]
            yield [*batch]
            ready = {launch: since for launch, since in ready.items() if launch not in batch}
            ready |= dict.fromkeys(self._released(batch), turn)

    def _released(self, batch: Sequence[Launch]) -> list[Launch]:
        """Returns the launches that waited for nothing but this batch and earlier ones."""
        found = []
        for launch in (following for done in batch for following in self._after[done]):
            self._waits[launch] -= 1
            if not self._waits[launch]:
                found.append(launch)
        return found


def dependents(launches: Sequence[Launch]) -> dict[Launch, list[Launch]]:
    """Returns the launches that must run after each launch, because both touch a value that one of them writes."""
    after: dict[Launch, dict[Launch, None]] = {launch: {} for launch in launches}
    uses: dict[Array, _Uses] = defaultdict(_Uses)
    for launch in launches:
        written = set(writes(launch))
        for value in dict.fromkeys((*reads(launch), *writes(launch))):
            for earlier in uses[value].added(launch, value in written):
                after[earlier][launch] = None
    return {launch: list(following) for launch, following in after.items()}


@dataclass
class _Uses:
    """The launches that have written a value last, several if each writes a part of it; those that have read it since;
    and those that must run before either of them."""

    writers: list[Launch] = field(default_factory=list)
    readers: list[Launch] = field(default_factory=list)
    before: list[Launch] = field(default_factory=list)

    def added(self, launch: Launch, writes: bool) -> list[Launch]:
        """Adds a launch, and returns those that it depends on."""
        if not writes:
            self.readers.append(launch)
            return self.writers
        if self.readers or not all(_are_parts(launch, writer) for writer in self.writers):
            self.before = [*self.writers, *self.readers]
            self.writers, self.readers = [], []
        self.writers.append(launch)
        # The first part is the one with which the value begins.
        return [*self.before, *self.writers[:1]] if len(self.writers) > 1 else self.before


def _are_parts(one: Launch, other: Launch) -> bool:
    return one.whole is not None and one.whole is other.whole


def spans(batches: Sequence[Sequence[Step]]) -> Iterator[tuple[int, int, set[Array]]]:
    """Yields the first and the last position, in the order of `program.walk`, of each batch of several steps, and the
    values that these use."""
    position = 0
    for batch in batches:
        if len(batch) > 1:
            yield position, position + len(batch) - 1, {value for step in batch for value in operands(step)}
        position += sum(map(_count, batch))


def _count(step: Step) -> int:
    return 1 + sum(_count(inner) for steps in nested(step) for inner in steps)
