"""A tape of a pipeline: what every pass, and every rewrite in it, changed in a program. It is one list of lines, in
which each line says from which step to which it is in the program: the program at any step, and the difference of any
two, are read off without another copy. Values keep their names from step to step, so that equal lines are equal."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise

from trivium.ir.core import Operation, Value
from trivium.ir.func import Function, Module
from trivium.ir.text.names import name_values, sanitize
from trivium.ir.text.printer import Printer

FOREVER = 1 << 30
"""The step at which a line ends that is never removed."""

LONGEST = 400
"""The characters of a line that are kept."""

CONTEXT = 2
"""The number of equal lines that are shown around a difference."""


@dataclass(eq=False)
class Line:
    """A line that is in the program from the step `born` until before the step `died`. `op` is the op that it is of."""

    text: str
    born: int
    op: Operation | None = None
    died: int = FOREVER
    place: int = 0
    next: Line | None = None


@dataclass(frozen=True)
class Step:
    """One change: a rewrite by a rule, or the rest of what a pass does. `about` is the rule's equation."""

    rule: str
    about: str = ""


@dataclass
class PassRun:
    """A pass that changed the program: its steps are those from `first` to before `end`; the program has so many ops
    before and after it."""

    name: str
    first: int
    end: int
    before: int
    after: int


@dataclass
class _Unit:
    """An op directly in a function, or a function: its lines, and what tells whether it was changed."""

    lines: list[Line]
    state: Sequence[object] = ()


@dataclass
class Tape:
    """Watches a pipeline (see `trivium.compiler.passes.watch`). Step 0 is the program as it was; `steps[i]` leads to
    step i + 1. Rewrites inside of loops and branches are one step for each pass."""

    steps: list[Step] = field(default_factory=list)
    passes: list[PassRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._head = Line("", 0)
        self._units: dict[Operation, _Unit] = {}
        self._names: dict[Value, str] = {}
        self._used: set[str] = set()
        self._number = 0
        self._count = 0
        self._printer = Printer(self._names, elide=True)
        self._brief = Printer(self._names, brief=True)

    # Events of the pipeline

    def began(self, module: Module) -> None:
        """Records the initial program."""
        self._names |= name_values(module)
        self._used = {name.partition("#")[0] for name in self._names.values()}
        self._compare(module)
        self._count = _count(module)

    def rewrote(self, rule: object, op: Operation, inserted: Sequence[Operation], users: Iterable[Operation]) -> None:
        """Adds a step. New values have the names of those that they replace."""
        unit = self._units.pop(op, None)
        if unit is None:
            return  # inside a region: the end of the pass shows it
        name, about = getattr(rule, "__name__", ""), getattr(rule, "__doc__", None) or ""
        self.steps.append(Step(name, " ".join(about.split())))
        self._end(unit.lines)
        if inserted and len(inserted[-1].results) == len(op.results):
            for old, new in zip(op.results, inserted[-1].results, strict=True):
                self._names.setdefault(new, self._names[old])
        cursor = unit.lines[-1]
        for new in inserted:
            cursor = self._write(new, cursor)
        for user in dict.fromkeys(map(_top, users)):
            if user in self._units:
                self._update(user)

    def passed(self, name: str, module: Module) -> None:
        """Adds what the pass did apart from reported rewrites, and the pass, if it changed anything."""
        first = self.passes[-1].end if self.passes else 0
        self.steps.append(Step(""))
        if not self._compare(module):
            self.steps.pop()
        if len(self.steps) > first:
            count = _count(module)
            self.passes.append(PassRun(name, first, len(self.steps), self._count, count))
            self._count = count

    # What is read

    @property
    def lines(self) -> list[Line]:
        """All lines that the program ever had, in order."""
        return list(self._lines())

    def difference(self, first: int, end: int) -> Iterator[tuple[str, Line | int]]:
        """Yields the lines of the programs at two steps, each with a sign: `-` only in the first one, `+` only in the
        second one. Of lines in both, those near a difference have the sign ` `, and of the others only their number is
        given."""
        shown = [(line, line.born <= first < line.died, line.born <= end < line.died) for line in self._lines()]
        shown = [entry for entry in shown if entry[1] or entry[2]]
        differs = [i for i, (_, before, after) in enumerate(shown) if before != after]
        near = {i + by for i in differs for by in range(-CONTEXT, CONTEXT + 1)}
        folded = 0
        for i, (line, before, after) in enumerate(shown):
            if i not in near:
                folded += 1
                continue
            if folded:
                yield " ", folded
            folded = 0
            yield " " if before and after else "-" if before else "+", line
        if folded:
            yield " ", folded

    def text(self, first: int, end: int) -> Iterator[str]:
        """Yields the difference of the programs at two steps as text."""
        for sign, line in self.difference(first, end):
            yield f"{sign} {line.text}" if isinstance(line, Line) else f"  ... {line} equal lines"

    def _lines(self) -> Iterator[Line]:
        line = self._head.next
        while line is not None:
            yield line
            line = line.next

    # Changes

    def _compare(self, module: Module) -> bool:
        """Writes down how the program differs from what is known; returns whether it does."""
        changed = False
        for place, line in enumerate(self._lines()):
            line.place = place
        functions = {function: _units_of(function) for function in module.functions.values()}
        units = [op for own in functions.values() for op in own]
        present = set(units)
        for op in [op for op in self._units if op not in present]:
            self._end(self._units.pop(op).lines)
            changed = True
        for op in self._out_of_order(units):
            self._end(self._units.pop(op).lines)
        cursor = self._head
        for function, own in functions.items():
            for op in own:
                unit = self._units.get(op)
                if unit is None:
                    cursor = self._write(op, cursor)
                    changed = True
                    continue
                if not _is_as(unit.state, op):
                    changed |= self._update(op)
                cursor = unit.lines[0 if op is function else -1]
            cursor = self._units[function].lines[-1]
        return changed

    def _out_of_order(self, units: Sequence[Operation]) -> list[Operation]:
        """Returns ops that moved: as few as explain the order."""
        known = [op for op in units if op in self._units]
        places = [self._units[op].lines[0].place for op in known]
        if all(a <= b for a, b in pairwise(places)):
            return []
        kept = _increasing(places)
        return [op for i, op in enumerate(known) if i not in kept]

    def _write(self, op: Operation, after: Line) -> Line:
        """Adds the lines of a new op; returns the last one, or of a function the first one."""
        while after.next is not None and after.next.died == len(self.steps):
            after = after.next
        self._name(op)
        unit = self._units[op] = _Unit([], _state(op))
        unit.lines = [Line(text, len(self.steps), op) for text in self._text(op)]
        for line in unit.lines:
            line.next, after.next = after.next, line
            after = line
        return unit.lines[0] if isinstance(op, Function) else after

    def _update(self, op: Operation) -> bool:
        """Writes the lines of an op anew that differ."""
        unit = self._units[op]
        unit.state = _state(op)
        self._name(op)
        texts, old = self._text(op), unit.lines
        if [line.text for line in old] == texts:
            return False
        lines: list[Line] = []
        for tag, a, b, c, d in SequenceMatcher(None, [line.text for line in old], texts, autojunk=False).get_opcodes():
            if tag == "equal":
                lines += old[a:b]
                continue
            self._end(old[a:b])
            after = old[b - 1] if b > a else lines[-1] if lines else self._before(old[0])
            for text in texts[c:d]:
                line = Line(text, len(self.steps), op)
                line.next, after.next = after.next, line
                lines.append(line)
                after = line
        unit.lines = lines
        return True

    def _end(self, lines: Iterable[Line]) -> None:
        for line in lines:
            line.died = len(self.steps)

    def _before(self, line: Line) -> Line:
        before = self._head
        while before.next is not None and before.next is not line:
            before = before.next
        return before

    # Text

    def _text(self, op: Operation) -> list[str]:
        if isinstance(op, Function):
            head, _, body = self._brief.operation(op).rpartition(" {...}")
            return [body] if not head else [head[:LONGEST] + " {", "}"]
        self._printer.indent = "  "
        return [text[:LONGEST] for text in f"  {self._printer.operation(op)}".split("\n")]

    def _name(self, op: Operation) -> None:
        """Names the values of an op, and those inside it, that have no name yet."""
        for one in (op,) if isinstance(op, Function) or not op.regions else op.walk():
            for argument in (a for region in one.regions for block in region.blocks for a in block.arguments):
                if argument not in self._names:
                    self._names[argument] = self._unique(argument.name_hint)
            if one.results and one.results[0] not in self._names:
                name, several = self._unique(one.results[0].name_hint), len(one.results) > 1
                self._names |= {value: f"{name}#{value.index}" if several else name for value in one.results}

    def _unique(self, hint: str) -> str:
        name = f"%{sanitize(hint)}" if hint else ""
        while not name or name in self._used:
            name = f"%{sanitize(hint) + '_' if hint else ''}{self._number}"
            self._number += 1
        self._used.add(name)
        return name


def _units_of(function: Function) -> list[Operation]:
    return [function, *([] if function.is_declaration else function.body.block)]


def _state(op: Operation) -> list[object]:
    """Returns objects that are others if the op, or one inside it, is changed: operands are a new tuple, types and ops
    other objects."""
    if isinstance(op, Function):
        return [*op.attributes.values(), *(argument.type for argument in op.arguments)]
    if not op.regions:
        return [op.operands, *op.result_types]
    return [part for one in op.walk() for part in (one, one.operands)]


def _is_as(state: Sequence[object], op: Operation) -> bool:
    """Whether the state of an op is still this one."""
    if not op.regions and len(op.results) == 1:  # most ops
        return state[0] is op.operands and state[1] is op.results[0].type
    now = _state(op)
    return len(state) == len(now) and all(map(operator.is_, state, now))


def _increasing(places: Sequence[int]) -> set[int]:
    """Returns the positions of a longest increasing part of a sequence of different numbers."""
    ends: list[int] = []  # positions of the least numbers at which increasing parts of each length end
    before: list[int] = []
    for i, place in enumerate(places):
        length = bisect_left(ends, place, key=places.__getitem__)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [i]
    kept: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return kept


def _top(op: Operation) -> Operation:
    """Returns the op directly in a function that an op is, or is inside of."""
    while (parent := op.parent_op) is not None and not isinstance(parent, Function):
        op = parent
    return op


def _count(module: Module) -> int:
    return sum(1 for function in module.functions.values() for _ in function.body.walk())
