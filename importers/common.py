"""The parts that the importers share: the table of rules, the loop over a graph's nodes, and the errors of both.

An importer makes one table, `rule = Rules("PyTorch")`, whose entries are functions; it derives one class from
`GraphImporter`, which says what a node is called, where it came from and how its rule is called. Everything else is
here: duplicates are rejected when the rules are imported, all ops without a rule are listed before the first one is
converted, and every error names the node, the user's line and the graph that was being imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from trivium.importers.context import Context
from trivium.ir.attributes import Dictionary
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.location import UNKNOWN, FileLocation, Location, NameLocation
from trivium.ir.module_path import in_module

Node = TypeVar("Node")
Ctx = TypeVar("Ctx", bound=Context)
Rule = TypeVar("Rule", bound=Callable[..., Any])


class Rules:
    """The rules of one framework by op name. Calling the table registers one:

        @rule("aten.cat.default")              # one name, or several that mean the same
        @rule("Concat", since=13)              # from version 13 of the op set on

    A rule that changed over versions is registered once for each; the newest that is not too new applies.
    """

    def __init__(self, framework: str):
        self.framework = framework
        self._rules: dict[str, dict[int, Callable[..., Any]]] = {}

    def __call__(self, *names: str, since: int = 0) -> Callable[[Rule], Rule]:
        def register(function: Rule) -> Rule:
            for name in names:
                self.add(name, function, since)
            return function

        return register

    def add(self, name: str, function: Callable[..., Any], since: int = 0) -> None:
        """Registers a rule; a name can have one rule per version."""
        if not name or name != name.strip():
            raise Error(f"{self.framework} rule {_place(function)} has the name {name!r}, expected an op's name")
        versions = self._rules.setdefault(name, {})
        if since in versions:
            raise Error(f"{self.framework} op {name} has two rules, {_place(versions[since])} and {_place(function)}")
        versions[since] = function

    def find(self, name: str, version: int | None = None) -> Callable[..., Any] | None:
        """Returns the rule of an op, in a version of the op set (or the newest); `None` if there is none."""
        versions = self._rules.get(name, {})
        fitting = [since for since in versions if version is None or since <= version]
        return versions[max(fitting)] if fitting else None

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._rules))

    def __len__(self) -> int:
        return len(self._rules)


RAW_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What rules raise for graphs that surprise them: graphs come from files too, which no framework may have checked."""


class GraphImporter(ABC, Generic[Node, Ctx]):
    """Converts the nodes of one graph, in order, at the cursor of `emit`, which belongs to the importer alone. `graph`
    names the graph in errors."""

    def __init__(self, emit: Ctx, graph: str = "main"):
        self.emit = emit
        self.graph = graph

    @abstractmethod
    def name_of(self, node: Node) -> str:
        """Returns the framework's name of the node's op, under which rules are registered."""

    @abstractmethod
    def rule_of(self, node: Node) -> Callable[..., Any] | None:
        """Returns the rule that converts a node; `None` if there is none."""

    @abstractmethod
    def location_of(self, node: Node) -> Location:
        """Returns the source location of the node."""

    @abstractmethod
    def convert(self, node: Node, rule: Callable[..., Any]) -> None:
        """Reads the node's operands, calls its rule, and keeps what it returns."""

    def describe(self, node: Node) -> str:
        """Returns the node as a line of text, for errors."""
        return str(node)

    def inner_nodes(self, node: Node) -> Iterable[Node]:
        """Returns the nodes of graphs inside a node (bodies of loops, functions that it calls)."""
        return ()

    def convert_all(self, nodes: Sequence[Node]) -> None:
        """Converts the nodes. Raises one `UnsupportedOpError` for all ops without a rule, before anything is
        converted."""
        self.require_rules(nodes)
        for node in nodes:
            location = self.location_of(node)
            with self.emit.at(location):
                place = {"source": location.describe() or None, "during": f"importing {self.graph!r}"}
                try:
                    rule = self.rule_of(node)
                    assert rule is not None, self.name_of(node)
                    self.convert(node, rule)
                except Error as error:
                    error.add(inside=self.describe(node), **place)
                    raise
                except RAW_ERRORS as error:
                    message = f"{self.name_of(node)}: {type(error).__name__}: {error}"
                    raise Error(message, inside=self.describe(node), **place) from error

    def require_rules(self, nodes: Iterable[Node]) -> None:
        """Rejects a graph that has nodes without a rule, and lists them all."""
        missing = [node for node in self._all(nodes) if self.rule_of(node) is None]
        if missing:
            occurrences = [(self.name_of(node), self.location_of(node)) for node in missing]
            refuse(occurrences, during=f"importing {self.graph!r}")

    def all_inner_nodes(self, node: Node) -> Iterator[Node]:
        """Returns the nodes of graphs inside a node, of graphs inside of these, and so on."""
        return self._all(self.inner_nodes(node))

    def _all(self, nodes: Iterable[Node]) -> Iterator[Node]:
        stack = [iter(nodes)]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
            else:
                yield node
                stack.append(iter(self.inner_nodes(node)))


MAX_DEPTH = 40
"""The maximal depth of calls of a model's functions inside one another."""

MAX_NODES, MAX_GROWTH = 20_000, 16
"""The limit on a graph's nodes after its functions are inlined: the larger of MAX_NODES and MAX_GROWTH times the number
of nodes in the file."""


class Calls(Generic[Node]):
    """The functions of a model, which are inlined where they are called. `nodes_of` returns the nodes of a function,
    `called` the names of the functions that a node calls."""

    def __init__(self, nodes_of: Callable[[str], Sequence[Node]], called: Callable[[Node], Iterable[str]]):
        self.nodes_of, self.called = nodes_of, called
        self.sizes: dict[str, int] = {}
        self.written = 0

    def require_bounded(self, nodes: Sequence[Node]) -> None:
        """Rejects a graph whose functions are recursive, or that has far more nodes after inlining."""
        size = self._size(nodes, ())
        if size > (most := max(MAX_NODES, MAX_GROWTH * self.written)):
            raise Error(f"the graph has {size} nodes when its functions are inlined, expected at most {most}")

    def _size(self, nodes: Sequence[Node], callers: tuple[str, ...]) -> int:
        self.written += len(nodes)
        return len(nodes) + sum(self._size_of(name, callers) for node in nodes for name in self.called(node))

    def _size_of(self, name: str, callers: tuple[str, ...]) -> int:
        if name in callers:
            raise Error(f"function {name} calls itself: {' calls '.join((*callers[callers.index(name) :], name))}")
        if len(callers) >= MAX_DEPTH:
            raise Error(f"function {name} is called inside {len(callers)} others, expected at most {MAX_DEPTH}")
        if name not in self.sizes:
            self.sizes[name] = self._size(self.nodes_of(name), (*callers, name))
        return self.sizes[name]


def refuse(occurrences: Iterable[tuple[str, Location]], during: str | None = None) -> NoReturn:
    """Raises one `UnsupportedOpError` for many nodes: it lists each op once, with its count and its first location."""
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for name, location in occurrences:
        counts[name] = counts.get(name, 0) + 1
        first.setdefault(name, location.describe().removesuffix(f", {name}"))
    found = [Unsupported(name, counts[name], first[name]) for name in counts]
    many = f"{len(found)} ops have" if len(found) > 1 else "1 op has"
    raise UnsupportedOpError(f"{many} no rule:", found, during=during)


def require_regular(path: str | Path) -> None:
    """Rejects a pipe or a device, which may never end."""
    if (path := Path(path)).exists() and not path.is_file():
        raise Error(f"cannot read {path}: it is not a regular file")


def place(op: str, file: str = "", line: int = 0, function: str = "", path: str = "") -> Location:
    """Returns the location of a node: the framework's op, in a function and at a line of the user's, and in the part of
    the model at `path`."""
    where: Location = FileLocation(file, line) if file else UNKNOWN
    return in_module(NameLocation(op, NameLocation(function, where) if function else where), path)


def role(kind: str, name: str = "", **more: str) -> Dictionary:
    """Returns the attributes of a function's argument or result: its role (`input`, `output`, `parameter`, `buffer`,
    `state`) and the framework's name for it."""
    assert kind in ROLES, kind
    named = {"trivium.name": name} if name else {}
    return Dictionary({"trivium.role": kind, **named, **more})


ROLES = ("input", "output", "parameter", "buffer", "state")


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
