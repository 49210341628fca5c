"""For which sizes there are programs, if sizes change with every call: for ranges of them, as wide as from one power of
two to the next, and narrower ones where the space that a program leaves has cost as much as compiling another one."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from trivium.backends.estimates import Costs

Sizes = tuple[int, ...]
"""What is not known of a program's arguments before a call: their extents, and integers that extents follow from."""

SMALL = 8
"""Sizes from 2 to this are one range."""

MOST_COMBINATIONS = 512
"""For how many combinations of sizes there is one program, at most. If several sizes vary, their ranges are shorter."""

MOST_SPACE = 4
"""How many times as much space as the smallest sizes need a program has, at most, if several sizes vary."""

SHARE = 4
"""Sizes with more than one in this many parts of what a program loses get a program of their own."""

LOST = 0.2
"""What loops that end where sizes do still lose of what they would if they did not: along what is summed up, and in
lanes."""

KNOWN = 2
"""For how many single combinations of sizes costs are remembered."""

P = TypeVar("P")


class Link(NamedTuple):
    """A size that is `numerator / denominator` times another one, its leader, plus `offset`; a constant if that is
    nothing."""

    leader: int
    numerator: int
    denominator: int
    offset: int

    def of(self, leading: int) -> int | None:
        """Returns the size for that of its leader, unless there is none."""
        if not self.numerator:
            return self.offset
        size, rest = divmod(self.numerator * leading, self.denominator)
        return None if rest or size + self.offset < 0 <= leading else size + self.offset


class Together:
    """Which sizes vary together, in all calls so far: one is the same as another one, differs from it by a constant, or
    is a multiple of it; or has always been the same number."""

    def __init__(self) -> None:
        self.seen: list[Sizes] = []
        """The sizes that had not been expected."""
        self.links: list[Link] = []

    def see(self, sizes: Sizes) -> None:
        if not self.seen or any(link.of(sizes[link.leader]) != size for link, size in self._pairs(sizes)):
            self.seen.append(sizes)
            self.links = _links(list(zip(*self.seen, strict=True)))

    def _pairs(self, sizes: Sizes) -> Iterable[tuple[Link, int]]:
        return zip(self.links, sizes, strict=True)

    @property
    def leaders(self) -> list[int]:
        """The sizes that vary independently, by their places."""
        return [index for index, link in enumerate(self.links) if link == _itself(index)]

    def combinations(self, ranges: Sequence[range]) -> list[Sizes]:
        """Returns the sizes in each combination of leaders from these ranges."""
        leaders = self.leaders
        found = []
        for numbers in itertools.product(*ranges):
            leading = dict(zip(leaders, numbers, strict=True))
            sizes = tuple(link.of(leading.get(link.leader, 0)) for link in self.links)
            if None not in sizes:
                found.append(sizes)
        return found  # type: ignore[return-value]

    def volume(self, sizes: Sizes) -> int:
        """Returns what costs are taken to be linear in."""
        return math.prod(max(1, sizes[index]) for index in self.leaders)


def _itself(index: int) -> Link:
    return Link(index, 1, 1, 0)


def _links(columns: Sequence[Sizes]) -> list[Link]:
    """Returns the links between sizes that have had these values, one after another."""
    found: list[Link] = []
    leaders: list[int] = []
    for index, column in enumerate(columns):
        if len(set(column)) == 1:
            found.append(Link(index, 0, 1, column[0]))
            continue
        links = (_linked(column, leader, columns[leader]) for leader in leaders)
        found.append(next((link for link in links if link is not None), _itself(index)))
        if found[-1].leader == index:
            leaders.append(index)
    return found


def _linked(column: Sizes, leader: int, leading: Sizes) -> Link | None:
    pairs = list(zip(column, leading, strict=True))
    differences = {a - b for a, b in pairs}
    if len(differences) == 1:
        return Link(leader, 1, 1, differences.pop())
    a, b = pairs[0]
    if b > 0 and all(x * b == y * a for x, y in pairs):
        return Link(leader, a, b, 0)
    return None


def octave(size: int) -> range:
    """Returns the widest range of a size."""
    if size < 2:
        return range(size, size + 1)
    if size <= SMALL:
        return range(2, SMALL + 1)
    last = 1 << (size - 1).bit_length()
    return range(last // 2 + 1, last + 1)


def half(sizes: range, size: int) -> range:
    """Returns that half of a range which has this size."""
    middle = (sizes.start + sizes.stop) // 2
    return range(sizes.start, middle) if size < middle else range(middle, sizes.stop)


def _shortened(ranges: list[range], sizes: Sequence[int]) -> list[range]:
    """Returns ranges of several sizes that are short enough together."""

    def halve(index: int) -> None:
        ranges[index] = half(ranges[index], sizes[index])

    while math.prod(map(len, ranges)) > MOST_COMBINATIONS:
        halve(max(range(len(ranges)), key=lambda index: len(ranges[index])))
    while len(ranges) > 1 and math.prod(map(_space, ranges)) > MOST_SPACE:
        halve(max(range(len(ranges)), key=lambda index: _space(ranges[index])))
    return ranges


def _space(sizes: range) -> float:
    """Returns how many times as much space as the smallest size the largest one needs."""
    return sizes[-1] / sizes[0] if len(sizes) > 1 else 1.0


def shown(combinations: Sequence[Sizes]) -> str:
    """Returns for which sizes a program is, for people."""
    ends = dict.fromkeys((min(column), max(column)) for column in zip(*combinations, strict=True))
    several = [f"{first} to {last}" for first, last in ends if first < last]
    return f"sizes from {', '.join(several)}" if several else "its sizes"


@dataclass(eq=False)
class Ranged(Generic[P]):
    """A program for several combinations of sizes. It loses time, in seconds, because it computes with space for the
    largest of them."""

    program: P
    numbers: dict[Sizes, int]
    compiling: float
    losses: Sequence[float]
    lost: Counter[Sizes] = field(default_factory=Counter)
    in_all: float = 0.0

    def use(self, sizes: Sizes) -> bool:
        """Counts a run with these sizes. Returns whether less has been lost than compiling a better program takes."""
        loss = self.losses[self.numbers[sizes]]
        self.lost[sizes] += loss  # type: ignore[assignment]
        self.in_all += loss
        return self.in_all <= self.compiling

    def better(self, sizes: Sizes, leaders: Sequence[int]) -> list[range] | None:
        """Returns the ranges of leaders for which a program is better with these sizes, half as wide as here; none if
        it is to be for just these sizes, since a good part of what was lost was theirs. What is lost next is counted
        anew."""
        often = SHARE * self.lost[sizes] > self.in_all
        self.lost.clear()
        self.in_all = 0.0
        columns = list(zip(*self.numbers, strict=True))
        whole = [range(min(columns[leader]), max(columns[leader]) + 1) for leader in leaders]
        return None if often else [half(each, sizes[leader]) for leader, each in zip(leaders, whole, strict=True)]


class Ranges(Generic[P]):
    """The programs of one function for ranges of sizes. Threads may share them."""

    def __init__(self, most: int):
        self.most = most
        self.together = Together()
        self._programs: list[Ranged[P]] = []
        self._exact: dict[Sizes, float] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[P]:
        """The programs, the least recently used one first."""
        with self._lock:
            return iter([ranged.program for ranged in self._programs])

    def see_exact(self, sizes: Sizes, costs: Costs) -> None:
        """Learns that there is a program for just these sizes, and what it costs."""
        with self._lock:
            self.together.see(sizes)
            if len(self._exact) < KNOWN:
                self._exact[sizes] = costs.running

    def find(self, sizes: Sizes) -> P | None:
        """Returns the program for these sizes; none if a better one is worth compiling."""
        with self._lock:
            found = self._narrowest(sizes)
            if found is None or not found.use(sizes):
                return None
            if found is not self._programs[-1]:
                self._programs.remove(found)
                self._programs.append(found)
            return found.program

    def wanted(self, sizes: Sizes) -> list[Sizes]:
        """Returns the combinations of sizes that the next program is for: those of the widest ranges; or, if there is a
        program for these that has lost too much, of ranges half as wide, or just these sizes."""
        with self._lock:
            self.together.see(sizes)
            found = self._narrowest(sizes)
            leaders = self.together.leaders
            ranges = [octave(sizes[leader]) for leader in leaders] if found is None else found.better(sizes, leaders)
            if ranges is None:
                return [sizes]
            return self.together.combinations(_shortened(ranges, [sizes[leader] for leader in leaders]))

    def add(self, combinations: Sequence[Sizes], program: P, costs: Costs) -> None:
        """Adds a program for these combinations of sizes."""
        with self._lock:
            losses = self._losses(combinations, costs.running, 1 - (1 - LOST) * costs.avoidable)
            numbers = {sizes: number for number, sizes in enumerate(combinations)}
            self._programs.append(Ranged(program, numbers, costs.compiling, losses))
            del self._programs[: -self.most]

    def _narrowest(self, sizes: Sizes) -> Ranged[P] | None:
        found = (ranged for ranged in self._programs if sizes in ranged.numbers)
        return min(found, key=lambda ranged: len(ranged.numbers), default=None)

    def _losses(self, combinations: Sequence[Sizes], running: float, share: float) -> list[float]:
        """Returns how many seconds a run loses in each combination. Costs are taken to be linear in the product of the
        sizes, with that of a program for exact sizes as the second point of the line: a step of a decoder reads all of
        its parameters, however long its cache is. Since loops end where sizes do, only a `share` of that is lost."""
        volumes = list(map(self.together.volume, combinations))
        most = max(volumes)
        slope = running / most
        exact = [(self.together.volume(sizes), seconds) for sizes, seconds in self._exact.items()]
        volume, seconds = max(exact, key=lambda point: abs(point[0] - most), default=(most, running))
        if volume != most:
            slope = min(slope, max(0.0, (running - seconds) / (most - volume)))
        return [share * slope * (most - volume) for volume in volumes]
