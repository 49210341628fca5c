"""The order of steps for devices that run several kernels in one launch (`Target.batches`): steps that do not depend on
one another become neighbours, if the order of lowering has separated them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from trivium.compiler.kernel.affine import holds
from trivium.compiler.kernel.structure import Update
from trivium.compiler.program import Array, Launch, Step, nested, operands, reads, writes


def batched(steps: Sequence[Step]) -> list[list[Step]]:
    """Returns the steps in batches, in an order that computes the same. The steps of a batch do not depend on one
    another. Only launches move: other steps stay between the ones before and after them."""
    batches: list[list[Step]] = []
    segment: list[Launch] = []
    for step in steps:
        if isinstance(step, Launch):
            segment.append(step)
            continue
        batches += [*_Segment(segment).batches(), [step]]
        segment = []
    return [*batches, *_Segment(segment).batches()]


class _Segment:
    """Launches between two other steps."""

    def __init__(self, launches: Sequence[Launch]):
        self._launches = launches
        self._after = dependents(launches)
        self._waits = dict.fromkeys(launches, 0)
        self._kinds = {launch: _kind(launch) for launch in launches}
        for following in self._after.values():
            for launch in following:
                self._waits[launch] += 1
        self._urgency: dict[Launch, int] = {}
        for launch in reversed(launches):
            self._urgency[launch] = max((self._urgency[one] + 1 for one in self._after[launch]), default=0)

    def batches(self) -> Iterator[list[Step]]:
        """Yields, again and again, the launch from which the longest chain of dependent ones leads to the end, with all
        others of its kind that could run as well."""
        ready = [launch for launch in self._launches if not self._waits[launch]]
        while ready:
            first = max(ready, key=self._urgency.__getitem__)
            batch = [launch for launch in ready if self._kinds[launch] == self._kinds[first]]
            yield list(batch)
            ready = [launch for launch in ready if launch not in batch] + self._released(batch)

    def _released(self, batch: Sequence[Launch]) -> list[Launch]:
        """Returns the launches that waited for nothing but this batch and earlier ones."""
        found = []
        for launch in (following for done in batch for following in self._after[done]):
            self._waits[launch] -= 1
            if not self._waits[launch]:
                found.append(launch)
        return found


def _kind(launch: Launch) -> Hashable:
    """Returns what launches that may share one have in common: what their threads need of the device."""
    kernel = launch.kernel
    if holds(kernel.body, Update):
        return launch
    return kernel.contraction is not None or kernel.attention is not None


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
