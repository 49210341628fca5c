"""A module as a stage: its ops with their types, the edges between them, and the groups that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from trivium.ir import ops
from trivium.ir.core import BlockArgument, Operation, Value
from trivium.ir.func import Function, Module
from trivium.ir.location import Location, NameLocation, file_locations
from trivium.ir.module_path import module_path
from trivium.page.constants import histogram
from trivium.page.data import Item, Stage
from trivium.page.groups import Line, group_items, split_path
from trivium.page.listing import listing
from trivium.page.tags import Tag, ops_of

MOST_CONSTANTS = 2000
"""The number of constants that get a histogram: as many as a model has parameters."""

MANY_ARGUMENTS = 20
"""The number of arguments from which on they are a group."""

Origins = Callable[[Operation], list[int]]


def graph_stage(module: Module, name: str, title: str, origins: Origins) -> Stage:
    """Returns the stage of a module. The items are its ops, numbered as in `ops_of`, and after them the arguments of
    its functions. `origins` are the items of the previous stage that an op came from."""
    functions = [function for function in module.functions.values() if not function.is_declaration]
    every = ops_of(functions)
    numbers = {op: number for number, op in enumerate(every)}
    arguments: dict[Value, int] = {
        argument: len(every) + i for i, argument in enumerate(a for f in functions for a in f.arguments)
    }
    stage = Stage(name, title)
    stage.lines, stage.owners = listing(module, numbers)
    hidden = _hidden(every)
    stage.items = [_item(op, op in hidden, _operands(op, numbers, arguments), origins(op)) for op in every]
    stage.items += [_argument(argument) for function in functions for argument in function.arguments]
    _add_histograms(stage.items, every)
    paths = _paths(every) + [""] * len(arguments)
    for item, path in zip(stage.items, paths, strict=True):
        item.path = path
    places = _places(functions, every, paths)
    stage.groups = group_items(stage.items, places, _lines(every) + [None] * len(arguments))
    return stage


def _lines(every: Sequence[Operation]) -> list[Line]:
    """Returns the line of every op."""

    @cache
    def line_of(location: Location) -> Line:
        place = next(iter(file_locations(location, 1)), None)
        return (place.file, place.line) if place else None

    return [line_of(_own_location(op)) for op in every]


def _own_location(op: Operation) -> Location:
    """Returns the location of an op without its tag, if it has one: many ops share it."""
    return op.location.place if isinstance(op.location, Tag) else op.location


def _item(op: Operation, hidden: bool, operands: list[int], origins: list[int]) -> Item:
    kind = "constant" if isinstance(op, ops.Constant) else "end" if not op.results else "op"
    facts = {"framework": named} if (named := framework_name(op.location)) else {}
    types = ", ".join(str(value.type) for value in op.results or op.operands)
    return Item(op.NAME.rpartition(".")[2], kind, types, "", 0, hidden, origins, operands, facts)


def _argument(argument: BlockArgument) -> Item:
    function = argument.block.region.parent if argument.block.region is not None else None
    about: Mapping[str, object] = function.argument_attributes(argument.index) if isinstance(function, Function) else {}
    role = str(about.get("trivium.role", ""))
    name = str(about.get("trivium.name", "")) or argument.name_hint or f"arg{argument.index}"
    state = role in ("parameter", "buffer", "state")
    return Item(name, "argument", str(argument.type), hidden=state, facts={"role": role} if role else {})


def _hidden(every: Sequence[Operation]) -> set[Operation]:
    """Returns constants, ops that depend on constants alone, and the scalar ops in regions of reductions and similar
    ops: they are in the text, but would crowd the graph."""
    found: set[Operation] = set()
    for op in every:
        parent = op.parent_op
        scalar = parent is not None and not isinstance(parent, Function | ops.While | ops.If | ops.Case)
        alone = not op.regions and op.is_pure and all(value.defining_op in found for value in op.operands)
        if scalar or (alone and op.results):
            found.add(op)
    return found


def _operands(op: Operation, numbers: Mapping[Operation, int], arguments: Mapping[Value, int]) -> list[int]:
    """Returns the items whose results an op reads, without repetitions. An argument of a region is represented by the
    op of the region."""
    found: dict[int, None] = {}
    for value in op.operands:
        source = value.defining_op
        if isinstance(value, BlockArgument) and value not in arguments:
            source = value.block.region.parent if value.block.region is not None else None
        number = arguments.get(value) if source is None else numbers.get(source)
        if number is not None:
            found[number] = None
    return list(found)


def _add_histograms(items: Sequence[Item], every: Sequence[Operation]) -> None:
    constants = [(item, op) for item, op in zip(items, every, strict=False) if isinstance(op, ops.Constant)]
    large_first = sorted(constants, key=lambda pair: -pair[1].value.array.size)
    for item, op in large_first[:MOST_CONSTANTS]:
        if op.value.array.size > 1:
            item.constant = histogram(op.value.array, str(op.value.type))


def _paths(every: Sequence[Operation]) -> list[str]:
    """Returns the path of every item. If its location has none, it has the path of the first op that uses the result,
    or of the op that contains the region."""
    known: dict[Operation, str] = {}
    path_of = cache(module_path)
    for op in reversed(every):
        path = path_of(_own_location(op))
        if not path:
            user = next((user for value in op.results for user, _ in value.uses), None)
            path = known.get(user, "") if user is not None else ""
        known[op] = path
    for op in every:
        if not known[op] and op.parent_op in known:
            known[op] = known[op.parent_op]
    return [known[op] for op in every]


def _places(functions: Sequence[Function], every: Sequence[Operation], paths: Sequence[str]) -> list[list[str]]:
    """Returns the names of the groups around every item, from the outermost on: the function, if there are several; the
    path; and ops that have regions of whole programs."""
    several = len(functions) > 1
    places: dict[Operation, list[str]] = {}
    found = []
    for number, op in enumerate(every):
        parent = op.parent_op
        if parent in places:
            place = places[parent]
        else:
            outer = [f"@{parent.sym_name}"] if several and isinstance(parent, Function) else []
            place = [*outer, *split_path(paths[number])]
        if isinstance(op, ops.While | ops.If | ops.Case):
            place = places[op] = [*place, f"{op.NAME.rpartition('.')[2]} {number}"]
        elif op.regions:
            places[op] = place
        found.append(place)
    arguments = sum(len(function.arguments) for function in functions)
    many = ["arguments"] if arguments > MANY_ARGUMENTS else []
    return found + [[f"@{f.sym_name}", *many] if several else many for f in functions for _ in f.arguments]


def framework_name(location: Location) -> str:
    """Returns the outermost name of a location, which is the framework's op, or an empty text."""
    waiting = [location]
    while waiting:
        place = waiting.pop()
        if isinstance(place, NameLocation):
            return place.name
        waiting.extend(reversed(place.children))
    return ""
