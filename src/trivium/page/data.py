"""The form of a page's data, which is one JSON object in the page: this file is its description, and what `assets/*.js`
read.

A program is shown in stages, in the order in which it was made: the user's source, the program, the optimized graph,
the launches, their kernels, LLVM, assembly. Every stage has items (lines, ops, launches, kernels, functions) and a
text. Each item names the items of the stage before it that it came from, so that whatever is selected, all that it came
from and all that it became follow from one kind of link. Items are numbered by their position in `Stage.items`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

Scalar = str | int | float | bool | None
Json = Scalar | list["Json"] | dict[str, "Json"]


@dataclass
class Histogram:
    """What is shown of a constant instead of its elements. `sampled` is the number of elements that were read; `counts`
    are for bins of equal width from `low` to `high`, of the finite elements."""

    shape: list[int]
    dtype: str
    sampled: int
    low: float
    high: float
    mean: float
    deviation: float
    zeros: int
    nonfinite: int
    counts: list[int]


@dataclass
class Item:
    """One thing to select. `origins` are items of the previous stage. `label` is the short name, `type` what it
    computes, `path` the part of the model. `operands` are the items of the same stage whose results it reads: the edges
    of the graph. `group` is the group that it belongs to, `hidden` whether the graph omits it (constants, and what
    depends on them alone). `facts` are further lines for people."""

    label: str
    kind: str
    type: str = ""
    path: str = ""
    group: int = 0
    hidden: bool = False
    origins: list[int] = field(default_factory=list)
    operands: list[int] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    constant: Histogram | None = None


@dataclass
class Group:
    """A part of the model, inside another one; the first group is the whole, and its own parent."""

    name: str
    parent: int


@dataclass
class Stage:
    """One stage. `lines` is the text, `owners[i]` the item that line i belongs to (-1: none). `groups` is empty if the
    stage is not a graph. `note` says what was omitted, and why.

    Lines of kernels and of machine code have origins of their own, finer than those of their items: `computes[i]` are
    the items of the stage `graph` that line i of the stage `kernels` computes a part of, `ends[i]` is the line after
    what begins on it (a loop has several lines), and `places[i]` is the line of the kernels that line i of machine code
    came from (-1: unknown). A stage that knows none of them has empty lists."""

    name: str
    title: str
    lines: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    note: str = ""
    computes: list[list[int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, text: str, owner: int = -1) -> None:
        """Adds lines of text."""
        new = text.split("\n")
        self.lines += new
        self.owners += [owner] * len(new)


@dataclass
class StepTime:
    """The time and work of a step in all its calls of one run: see `trivium.profile.Line`. `number` is its item in the
    stage `launches`."""

    number: int
    seconds: float
    calls: int
    flops: float
    nbytes: float
    limit: float
    bound: str


@dataclass
class Held:
    """An array in the arena: its bytes, and the first and last step of each time for which it is held. `steps` are the
    steps that write it, or read it."""

    name: str
    type: str
    offset: int
    nbytes: int
    spans: list[tuple[int, int]]
    steps: list[int]


@dataclass
class Times:
    """A profile: the time of a run, what the device can do in a second, the steps, slowest first; and the
    arena's size, how many bytes of it are in use at each step, and what it holds."""

    seconds: float
    runs: int
    flops: float
    nbytes: float
    steps: list[StepTime]
    arena: int
    used: list[int]
    held: list[Held]


@dataclass
class PassRun:
    """A pass that changed the program: its steps are those from `first` to before `end`, and the program has so many
    ops before and after it."""

    name: str
    first: int
    end: int
    before: int
    after: int


@dataclass
class Passes:
    """What the optimizer did, step by step: see `trivium.debug.tape`. Line i is in the program from step `born[i]`
    until before step `died[i]` (-1: to the end), and came from the items `origins[i]` of the stage `program`. Step i
    leads to i + 1, by the rule `rules[steps[i]]`: its name, and its equation."""

    lines: list[str]
    born: list[int]
    died: list[int]
    origins: list[list[int]]
    rules: list[list[str]]
    steps: list[int]
    passes: list[PassRun]


@dataclass
class Page:
    """Everything that a page shows."""

    title: str
    facts: dict[str, str]
    stages: list[Stage]
    open: str = ""
    """The stage that the reader asked for."""
    small: bool = False
    """Whether only the picture is shown at first, for a page in a narrow frame."""
    times: Times | None = None
    passes: Passes | None = None

    def stage(self, name: str) -> Stage | None:
        """Returns the stage of that name, if the page has it."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def json(self) -> dict[str, Json]:
        """Returns the object that the page holds. Fields of items that have their default are omitted."""
        stages: list[Json] = []
        for stage in self.stages:
            items: list[Json] = [_item(item) for item in stage.items]
            groups: list[Json] = [{"name": group.name, "parent": group.parent} for group in stage.groups]
            lines: list[Json] = [*stage.lines]
            owners: list[Json] = [*stage.owners]
            computes: list[Json] = [[*items] for items in stage.computes]
            ends: list[Json] = [*stage.ends]
            places: list[Json] = [*stage.places]
            fine = [("computes", computes), ("ends", ends), ("places", places)]
            stages.append(
                {
                    "name": stage.name,
                    "title": stage.title,
                    "note": stage.note,
                    "lines": lines,
                    "owners": owners,
                    "items": items,
                    "groups": groups,
                }
                | {name: value for name, value in fine if value}
            )
        page: dict[str, Json] = {"title": self.title, "facts": {**self.facts}, "open": self.open, "small": self.small}
        page["stages"] = stages
        if self.times is not None:
            page["times"] = _times(self.times)
        if self.passes is not None:
            page["passes"] = _passes(self.passes)
        return page


def _times(times: Times) -> Json:
    return dataclasses.asdict(times)


def _passes(passes: Passes) -> Json:
    """Returns the lists themselves: copies of them would take longer than all else."""
    runs: list[Json] = [vars(run) for run in passes.passes]
    return vars(passes) | {"passes": runs}


def _item(item: Item) -> dict[str, Json]:
    entry: dict[str, Json] = {"label": item.label, "kind": item.kind}
    plain = (
        ("type", item.type),
        ("path", item.path),
        ("group", item.group),
        ("hidden", item.hidden),
        ("origins", [*item.origins]),
        ("operands", [*item.operands]),
        ("facts", {**item.facts}),
    )
    for name, value in plain:
        if value:
            entry[name] = value
    if item.constant is not None:
        entry["constant"] = {**vars(item.constant)}
    return entry
