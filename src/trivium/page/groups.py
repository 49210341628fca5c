"""Groups the ops of a graph as the model is built: by the paths of its submodules. If a program has no paths, or a part
of the model has too many ops directly in it, repetitions are found (twelve layers are the same ops twelve times), then
ops of the same source line are put together, and groups that are still too large are split."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.page.data import Group, Item

MOST = 60
"""The largest number of ops directly in a group."""

MANY = 20
"""The number of ops beside repetitions that get a group."""

SHORTEST = 4
"""The number of ops of the shortest repetition that makes groups."""

FARTHEST = 4000
"""The largest number of ops among which repetitions are searched."""

Line = tuple[str, int] | None
"""A file and the number of a line, if they are known."""

Key = tuple[str, Line]
"""The name of an item, and its line."""

_SEPARATOR = re.compile(r"[./()]+")


@dataclass(eq=False)
class Node:
    """A group while the groups are built: its items by number, and the groups inside it by name."""

    name: str
    items: list[int] = field(default_factory=list)
    inner: dict[str, Node] = field(default_factory=dict)

    def at(self, path: Sequence[str]) -> Node:
        """Returns the group at a path inside this one, which is made if it is new."""
        node = self
        for part in path:
            node = node.inner.setdefault(part, Node(part))
        return node


def split_path(path: str) -> list[str]:
    """Returns the parts of a path: of `encoder.layer.0` and `encoder/layer/0` the same ones, and of `jvp(encoder)`
    first the transformation."""
    return [part for part in _SEPARATOR.split(path) if part]


def group_items(items: Sequence[Item], places: Sequence[Sequence[str]], lines: Sequence[Line]) -> list[Group]:
    """Groups items by their places and sets their `group`; returns the groups, outer ones before inner ones. Items with
    equal names of the same line count as the same op of another repetition."""
    root = Node("")
    for number, place in enumerate(places):
        root.at(place).items.append(number)
    visible = [not item.hidden and item.kind != "argument" for item in items]
    _arrange(root, visible, [(item.label, line) for item, line in zip(items, lines, strict=True)])
    groups: list[Group] = []
    _number(root, 0, items, groups)
    return groups


def _arrange(root: Node, visible: Sequence[bool], keys: Sequence[Key]) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        _join_only_child(node, root)
        own = [number for number in node.items if visible[number]]
        if len(own) > MOST:
            _split(node, own, keys)
        waiting += node.inner.values()


def _join_only_child(node: Node, root: Node) -> None:
    """Merges a group that contains only one group with it: `encoder.layer`."""
    while node is not root and not node.items and len(node.inner) == 1:
        (child,) = node.inner.values()
        node.name, node.items, node.inner = f"{node.name}.{child.name}", child.items, child.inner


def _split(node: Node, own: list[int], keys: Sequence[Key]) -> None:
    """Moves the items of a group into new groups inside it."""
    parts = _repeats(own, keys) or _lines(own, keys)
    if not parts:
        starts = range(0, len(own), MOST)
        parts = {(f"part {i + 1} of {len(starts)}",): own[start : start + MOST] for i, start in enumerate(starts)}
    moved: set[int] = set()
    for path, numbers in parts.items():
        *around, name = path
        outer = node.at(around)
        while name in outer.inner:
            name += "'"
        outer.inner[name] = Node(name, list(numbers))
        moved.update(numbers)
    node.items = [number for number in node.items if number not in moved]


def _repeats(own: Sequence[int], keys: Sequence[Key]) -> dict[tuple[str, ...], Sequence[int]]:
    """Returns the items of each repetition by its name, and what is before and after them if that is much; nothing if
    nothing is repeated."""
    start, period, count = repetition([keys[number] for number in own[:FARTHEST]])
    if count < 2:
        return {}
    end = start + count * period
    repeats = {(f"repeat {i + 1} of {count}",): own[start + i * period :][:period] for i in range(count)}
    around = {("before",): own[:start], ("after",): own[end:]}
    return repeats | {name: numbers for name, numbers in around.items() if len(numbers) > MANY}


def _lines(own: Sequence[int], keys: Sequence[Key]) -> dict[tuple[str, ...], Sequence[int]]:
    """Returns the items of each source line by the package and the line; nothing if they are of one line, or of too
    many."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number in own:
        if (line := keys[number][1]) is not None:
            name = f"{line[0].rpartition('/')[2]}:{line[1]}"
            found.setdefault((_package(line[0]), name), []).append(number)
    return {**found} if 1 < len(found) <= MOST else {}


def _package(file: str) -> str:
    """Returns the name of the installed package that a file belongs to, or that of its folder."""
    folders = file.rpartition("/site-packages/")[2].split("/")
    return folders[0] if "/site-packages/" in file else (folders[-2:-1] or [""])[0] or "source"


def repetition(keys: Sequence[Hashable]) -> tuple[int, int, int]:
    """Returns the start, the length and the count of the repetition that covers most of a sequence; a count below 2 if
    there is none."""
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    best = (0, len(keys), 1)
    covered = len(keys) // 3  # shorter ones are coincidence
    for period in range(SHORTEST, len(keys) // 2 + 1):
        equal = sequence[:-period] == sequence[period:]
        if np.count_nonzero(equal) + period <= covered:
            continue  # even if all of them were one run
        start, length = _longest_run(equal)
        count = length // period + 1
        if count > 1 and count * period > covered:
            best, covered = (start, period, count), count * period
    return best


def _longest_run(flags: np.ndarray) -> tuple[int, int]:
    """Returns the start and length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    if not edges.size:
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest] - starts[longest])


def _number(root: Node, parent: int, items: Sequence[Item], groups: list[Group]) -> None:
    waiting = [(root, parent)]
    while waiting:
        node, around = waiting.pop()
        number = len(groups)
        groups.append(Group(node.name, around))
        for item in node.items:
            items[item].group = number
        waiting += [(inner, number) for inner in reversed(node.inner.values())]
