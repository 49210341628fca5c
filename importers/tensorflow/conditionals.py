"""Conditionals of TensorFlow 1 as `If` and `Case` nodes. In such a graph, a `Switch` passes a tensor to one of several
branches, and a `Merge` takes the result of the branch that ran. What lies between them is what a branch computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.types_pb2 import DT_BOOL
from tensorflow.python.framework import op_def_registry

from trivium.importers.tensorflow.function_defs import (
    SWITCHES,
    Nodes,
    Source,
    ancestors,
    caller,
    data,
    function_of,
    output_of,
    source_of,
    sources,
    type_of_output,
    unused,
)
from trivium.ir.errors import Error


def functionalized_conditionals(
    nodes: Nodes, library: list[FunctionDef], types: Mapping[Source, int] | None = None
) -> Nodes:
    """Returns the nodes with their conditionals, the innermost ones first, as `If` and `Case` nodes. Their functions
    are added to the library. `types` are those of tensors from outside."""
    while merges := [node for node in nodes.values() if node.op == "Merge"]:
        choices = [_Choice(merge, [_branch(nodes, source) for source in data(merge)]) for merge in merges]
        names = {merge.name for merge in merges}
        waiting = [choice for choice in choices if choice.inside & names]
        ready = [x for x in _grouped(x for x in choices if not x.inside & names) if not _must_wait(x, waiting)]
        if not ready:
            raise Error(f"the conditionals {', '.join(sorted(names))} contain each other")
        for group in ready:
            first = _first(nodes, group)
            shared = {name for choice in group if choice not in first for name in choice.inside}
            nodes = _replaced(nodes, first, shared, library, types or {})
    return nodes


def _first(nodes: Nodes, group: list[_Choice]) -> list[_Choice]:
    """Returns the results of a group that do not follow from others of it, as gradients of a conditional do. Nodes that
    these share are computed in both places."""
    if len(group) == 1:
        return group
    names = {choice.merge.name for choice in group}
    given = [(x, [source.node for branch in x.branches for source in branch.used]) for x in group]
    first = [choice for choice, used in given if names.isdisjoint(ancestors(nodes, used))]
    if not first:
        raise Error(f"the conditionals {', '.join(sorted(names))} contain each other")
    twice = {name for x in first for name in x.inside} & {name for x in group if x not in first for name in x.inside}
    if changing := sorted(name for name in twice if _is_stateful(nodes[name])):
        raise Error(f"{', '.join(changing)} would run twice, in a conditional and in one that depends on its result")
    return first


def _is_stateful(node: NodeDef) -> bool:
    declared = op_def_registry.get(node.op)
    return declared is None or declared.is_stateful


@dataclass(frozen=True)
class _Branch:
    """What one branch computes for one `Merge`: its result, the nodes inside, and what it uses from outside."""

    result: Source
    inside: set[str]
    used: list[Source]


@dataclass(frozen=True)
class _Choice:
    """A `Merge` with its branches."""

    merge: NodeDef
    branches: list[_Branch]

    @property
    def inside(self) -> set[str]:
        return set().union(*(branch.inside for branch in self.branches))

    def condition(self, nodes: Nodes) -> Source:
        """Returns the condition that leads to one branch or the other."""
        switches = [x for branch in self.branches for x in branch.used if _is_switch(nodes, x)]
        found = {_origin(nodes, data(nodes[x.node])[1]) for x in switches}
        if len(found) != 1:
            raise Error(f"{self.merge.name} merges branches of {len(found)} conditions, expected one")
        return found.pop()

    def ordered(self, nodes: Nodes) -> list[_Branch]:
        """Returns the branches by their numbers: first that of a condition that does not hold."""
        numbers = [self._number(nodes, branch) for branch in self.branches]
        missing = set(range(len(numbers))) - set(numbers)
        if len(missing) > 1 or len(missing) != numbers.count(None):
            raise Error(f"{self.merge.name} merges the branches {numbers}, expected all of a conditional")
        found = {next(iter(missing)) if number is None else number: i for i, number in enumerate(numbers)}
        return [self.branches[found[number]] for number in range(len(numbers))]

    def _number(self, nodes: Nodes, branch: _Branch) -> int | None:
        """Returns the number of a branch; `None` if nothing shows it."""
        found = {x.index for x in branch.used if _is_switch(nodes, x) and not x.is_control}
        if len(found) > 1:
            raise Error(f"{self.merge.name} merges a result that depends on several branches of a conditional")
        return found.pop() if found else None


def _branch(nodes: Nodes, result: Source) -> _Branch:
    if _is_switch(nodes, result):
        return _Branch(result, set(), [result])
    walked = ancestors(nodes, [result.node], lambda node: node.op in SWITCHES)
    inside = _after_switches(nodes, walked)
    found = [source for name in walked if name in inside for source in sources(nodes[name])]
    return _Branch(result, inside, list(dict.fromkeys(x for x in (*found, result) if x.node not in inside)))


def _must_wait(group: list[_Choice], waiting: list[_Choice]) -> bool:
    """Whether a result of the same conditional depends on another conditional, which comes first."""
    inside, merges = (
        {name for choice in group for name in choice.inside},
        {choice.merge.name for choice in group},
    )
    return any(choice.inside & inside and not choice.inside & merges for choice in waiting)


def _after_switches(nodes: Nodes, walked: Sequence[str]) -> set[str]:
    """Returns the nodes that run only if a branch does: those that follow a `Switch`."""
    after: dict[str, list[str]] = {}
    for name in walked:
        for source in sources(nodes[name]):
            after.setdefault(source.node, []).append(name)
    found: set[str] = set()
    stack = [user for name, users in after.items() if name in nodes and nodes[name].op in SWITCHES for user in users]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += after.get(name, ())
    return found


def _is_switch(nodes: Nodes, source: Source) -> bool:
    return source.node in nodes and nodes[source.node].op in SWITCHES


def _origin(nodes: Nodes, source: Source) -> Source:
    while source.node in nodes and nodes[source.node].op == "Identity":
        source = data(nodes[source.node])[0]
    return source


def _grouped(choices: Iterable[_Choice]) -> list[list[_Choice]]:
    """Returns the results of each conditional: those that share nodes, which must not run twice."""
    groups: list[tuple[set[str], list[_Choice]]] = []
    for choice in choices:
        own = set(choice.inside)
        alike = [group for group in groups if group[0] & own]
        for shared, members in alike:
            own |= shared
            groups.remove((shared, members))
        groups.append((own, [*(x for _, members in alike for x in members), choice]))
    return [members for _, members in groups]


def _replaced(
    nodes: Nodes, group: list[_Choice], shared: set[str], library: list[FunctionDef], types: Mapping[Source, int]
) -> Nodes:
    """Returns the nodes with a conditional as one node, of which its merges become the outputs. Nodes inside that are
    shared with others stay."""
    inside = {name for choice in group for name in choice.inside} - shared
    used = dict.fromkeys(x for choice in group for branch in choice.branches for x in branch.used)
    outer = dict.fromkeys(_outside(nodes, x) for x in used if not x.is_control)
    named = {source: (f"x{index}", _type_of(nodes, source, types)) for index, source in enumerate(outer)}
    arguments = {x: named[_outside(nodes, x)][0] for x in used if not x.is_control}
    kinds = [choice.merge.attr["T"].type for choice in group]
    ordered, condition = [choice.ordered(nodes) for choice in group], group[0].condition(nodes)
    names = []
    for branches in zip(*ordered, strict=True):
        names.append(f"branch_{len(library)}")
        results = [(branch.result, dtype) for branch, dtype in zip(branches, kinds, strict=True)]
        library.append(function_of(names[-1], nodes, list(named.values()), arguments, results))
    controls = [x for x in used if x.is_control and not _is_switch(nodes, x)]
    node = caller(
        unused(f"{group[0].merge.name}/conditional", nodes),
        *_op(names, _type_of(nodes, condition, types)),
        inputs=[str(condition), *map(str, outer), *map(str, controls)],
        types={"Tin": [dtype for _, dtype in named.values()], "Tout": kinds},
    )
    if node.op == "If":
        node.attr["Tcond"].type = DT_BOOL
    rest = {name: x for name, x in nodes.items() if name not in inside} | {node.name: node}
    for index, (choice, dtype) in enumerate(zip(group, kinds, strict=True)):
        rest[choice.merge.name] = output_of(node, index, choice.merge.name, dtype)
    return rest


def _op(names: list[str], condition: int) -> tuple[str, dict[str, str | list[str]]]:
    """Returns the op that chooses one of the functions, with its attributes."""
    if condition == DT_BOOL:
        return "If", {"else_branch": names[0], "then_branch": names[1]}
    return "Case", {"branches": names}


def _outside(nodes: Nodes, source: Source) -> Source:
    """Returns the tensor outside of a conditional that one inside of it is."""
    return source_of(nodes[source.node].input[0]) if _is_switch(nodes, source) else source


def _type_of(nodes: Nodes, source: Source, types: Mapping[Source, int]) -> int:
    if source in types:
        return types[source]
    if source.node not in nodes:
        raise Error(f"{source} is used in a conditional, but the graph does not have it")
    return type_of_output(nodes[source.node], source.index)
