"""Loops of TensorFlow 1 as `While` nodes. Such a loop is a cycle of the graph: each of its variables enters a frame
(`Enter`), meets its next value (`Merge`, `NextIteration`), and a `Switch` leads it on into the body or out (`Exit`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.types_pb2 import DT_BOOL

from trivium.importers.tensorflow.conditionals import functionalized_conditionals
from trivium.importers.tensorflow.function_defs import (
    CONTROL_FLOW,
    Nodes,
    Source,
    ancestors,
    caller,
    data,
    declared,
    function_of,
    output_of,
    sources,
    unused,
)
from trivium.ir.errors import Error

ENTER, EXIT, MERGE, SWITCH, NEXT = "Enter", "Exit", "Merge", "Switch", "NextIteration"


def functionalized_loops(nodes: Nodes, library: list[FunctionDef]) -> Nodes:
    """Returns the nodes with their loops, the innermost ones first, as `While` nodes, whose functions are added to the
    library."""
    while frames := _frames(nodes):
        inner = [frame for frame, inside in frames.items() if _enters_only(nodes, inside, frame)]
        if not inner:
            raise Error(f"the loops {', '.join(sorted(frames))} are not nested")
        for frame in inner:
            nodes = _replaced(nodes, frame, frames[frame], library)
    return nodes


def _frames(nodes: Nodes) -> dict[str, list[str]]:
    """Returns the nodes of each frame, and of those inside of it: all that follow what enters it."""
    after: dict[str, list[str]] = {name: [] for name in nodes}
    for node in nodes.values():
        for source in sources(node):
            after.get(source.node, []).append(node.name)
    frames: dict[str, list[str]] = {}
    for node in nodes.values():
        if node.op == ENTER:
            frames.setdefault(_frame_of(node), []).append(node.name)
    return {frame: _following(nodes, after, frame, enters) for frame, enters in frames.items()}


def _following(nodes: Nodes, after: dict[str, list[str]], frame: str, enters: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    # How many frames inside of this one a node may be.
    stack = [(name, 0) for name in enters]
    while stack:
        name, depth = stack.pop()
        if name in found:
            continue
        found[name] = None
        node = nodes[name]
        if node.op == EXIT and not depth:
            continue
        inner = depth + (node.op == ENTER and _frame_of(node) != frame) - (node.op == EXIT)
        stack += [(user, inner) for user in after[name]]
    return list(found)


def _frame_of(node: NodeDef) -> str:
    return node.attr["frame_name"].s.decode()


def _enters_only(nodes: Nodes, inside: Iterable[str], frame: str) -> bool:
    return all(nodes[name].op != ENTER or _frame_of(nodes[name]) == frame for name in inside)


@dataclass(frozen=True)
class Variable:
    """A variable of a loop: its nodes, of which the last may be missing."""

    enter: NodeDef
    merge: NodeDef
    switch: NodeDef | None
    next: NodeDef


class Loop:
    """The nodes of one frame, by what they do."""

    def __init__(self, nodes: Nodes, frame: str, inside: list[str]):
        self.frame, self.inside = frame, inside
        own = [nodes[name] for name in inside]
        conditions = [node for node in own if node.op == "LoopCond"]
        if len(conditions) != 1:
            raise Error(f"the loop {frame} has {len(conditions)} conditions, expected one")
        (self.condition,) = conditions
        self.invariants = [x for x in own if x.op == ENTER and x.attr["is_constant"].b]
        entering = [x for x in own if x.op == ENTER and not x.attr["is_constant"].b]
        switches = {data(x)[0].node: x for x in own if x.op == SWITCH and data(x)[1].node == self.condition.name}
        merges = {data(x)[0].node: x for x in own if x.op == MERGE}
        self.variables = [self._variable(nodes, x, merges, switches) for x in entering]
        self.exits = {data(x)[0].node: x for x in own if x.op == EXIT}

    def _variable(
        self, nodes: Nodes, enter: NodeDef, merges: dict[str, NodeDef], switches: dict[str, NodeDef]
    ) -> Variable:
        merge = merges.get(enter.name)
        again = nodes.get(data(merge)[1].node) if merge is not None else None
        if merge is None or again is None or again.op != NEXT:
            raise Error(f"the loop {self.frame} has no next value of {enter.name}")
        return Variable(enter, merge, switches.get(merge.name), again)


def _replaced(nodes: Nodes, frame: str, inside: list[str], library: list[FunctionDef]) -> Nodes:
    """Returns the nodes with a loop as one node, of which its exits become the outputs."""
    loop = Loop(nodes, frame, inside)
    entering = [*(x.enter for x in loop.variables), *loop.invariants]
    types = [node.attr["T"].type for node in entering]
    signature = [(f"x{index}", dtype) for index, dtype in enumerate(types)]
    invariants = {Source(x.name, 0): f"x{len(loop.variables) + i}" for i, x in enumerate(loop.invariants)}
    at_test = {Source(x.merge.name, 0): f"x{i}" for i, x in enumerate(loop.variables)} | invariants
    in_body = {Source(x.switch.name, 1): f"x{i}" for i, x in enumerate(loop.variables) if x.switch} | invariants
    results = [(data(x.next)[0], x.enter.attr["T"].type) for x in loop.variables]
    results += [(source, types[int(name[1:])]) for source, name in invariants.items()]
    test = [(data(loop.condition)[0], DT_BOOL)]
    effects = _effects(nodes, loop, [*at_test, *in_body], [source.node for source, _ in (*results, *test)])
    names = {"cond": f"loop_{len(library)}_test", "body": f"loop_{len(library)}_body"}
    _add(names["cond"], nodes, signature, at_test, test, [], library)
    _add(names["body"], nodes, signature, in_body, results, effects, library)
    inputs = [str(data(x)[0]) for x in entering]
    controls = dict.fromkeys(str(source) for x in entering for source in sources(x) if source.is_control)
    node = caller(unused(frame, nodes), "While", names, inputs=[*inputs, *controls], types={"T": types})
    rest = {name: x for name, x in nodes.items() if name not in set(inside)} | {node.name: node}
    for index, variable in enumerate(loop.variables):
        end = loop.exits.get(variable.switch.name) if variable.switch else None
        if end is not None:
            rest[end.name] = output_of(node, index, end.name, types[index])
    return rest


def _add(
    name: str,
    nodes: Nodes,
    signature: Sequence[tuple[str, int]],
    arguments: Mapping[Source, str],
    results: Sequence[tuple[Source, int]],
    effects: Sequence[str],
    library: list[FunctionDef],
) -> None:
    """Adds a part of a loop to the library, with the conditionals in it."""
    given = {source.node for source in arguments}
    ends = [source.node for source, _ in results if source not in arguments] + list(effects)
    part = {x: nodes[x] for x in ancestors(nodes, ends, lambda node: node.name in given)}
    types = {source: dict(signature)[argument] for source, argument in arguments.items()}
    part = functionalized_conditionals(part, library, types)
    library.append(function_of(name, part, signature, arguments, results, effects))


def _effects(nodes: Nodes, loop: Loop, given: Iterable[Source], ends: Iterable[str]) -> list[str]:
    """Returns the nodes of a loop that must run although nothing needs their results."""
    edge = {source.node for source in given}
    needed = set(ancestors(nodes, ends, lambda node: node.name in edge))
    candidates = [nodes[name] for name in loop.inside if name not in needed | edge]
    return [x.name for x in candidates if x.op not in CONTROL_FLOW and declared(x).is_stateful]
