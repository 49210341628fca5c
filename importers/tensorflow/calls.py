"""Functions and control flow: calls are inlined, loops and conditionals become regions. Loops carry everything that
their body changes: values, the buffers of lists, and the variables that are written inside; everything else is used
from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from trivium.importers.extents import scalar_of
from trivium.importers.tensorflow.context import Context, Operand, rule
from trivium.importers.tensorflow.graph import function_graph
from trivium.importers.tensorflow.lists import Optional, TensorList, kind_of, parts_of, whole_of, zeros_of
from trivium.importers.tensorflow.state import Variable, draws, written_inputs
from trivium.importers.tensorflow.trips import Growth, pushes, trip_count, written
from trivium.ir import ops
from trivium.ir.core import Block, Region, Value
from trivium.ir.declare import Op
from trivium.ir.known import evaluate_known
from trivium.ir.types import TensorType, is_boolean


@rule("PartitionedCall", "StatefulPartitionedCall")
def call(ctx: Context, args: list[Operand], *, f: str) -> Sequence[Operand]:
    """PartitionedCall(args...; f) -> output..."""
    # TensorFlow adds outputs to the graph of a function that it differentiates.
    return ctx.inline(f, *args)[: len(ctx.node.outputs)]


# Loops


@rule("While", "StatelessWhile")
def while_loop(ctx: Context, input: list[Operand], *, cond: str, body: str) -> list[Operand]:
    """While(input...; cond, body) -> output..."""
    node = ctx.node
    condition, step = (function_graph(node.graph, name) for name in (cond, body))
    changing = [i for i in range(len(input)) if not _is_invariant(step, i)]
    trips, counters = trip_count(condition, step, input)
    room = _room(ctx) if trips is None else trips
    growth = {i: pushes(step, i, input) for i in changing if isinstance(input[i], TensorList)}
    start = {i: _prepared(ctx, input[i], room, growth.get(i)) for i in changing}
    start = {i: _lengthened(ctx, x, written(step, i, input, counters)) for i, x in start.items()}
    start |= _tried(ctx, body, input, start)
    start = {i: _kept(x) if (found := growth.get(i)) and not found.by else x for i, x in start.items()}
    variables = list(dict.fromkeys([*_written(ctx, step, input), *_written(ctx, condition, input)]))
    _allocate(ctx, body, input, start, trips, [x for x in variables if isinstance(ctx.state.values[x], TensorList)])
    loop = _Carried(ctx, list(start.values()), variables)

    def run(name: str) -> Callable[[list[Operand]], Sequence[Operand]]:
        def convert(carried: list[Operand]) -> Sequence[Operand]:
            operands = list(input)
            for i, operand in zip(changing, carried, strict=True):
                operands[i] = operand
            return ctx.inline(name, *operands)

        return convert

    inits = loop.flat(list(start.values()))
    types = [x.type for x in inits]
    test = loop.region(types, run(cond), lambda results: [_truth(ctx, results[0])])
    move = loop.region(types, run(body), lambda results: loop.flat([results[i] for i in changing]))
    _require_same_types(ctx, types, move)
    after = loop.unflat(ctx.add(ops.While(inits, cond=test, body=move)))
    results = list(input)
    for i, operand in zip(changing, after, strict=True):
        if trips is None and room is not None:
            _require_room(ctx, input[i], operand)
        ended = _ended(operand, counters[i], start[i], trips, growth.get(i))
        results[i] = _left(input[i], ended)
    return results


def _kept(operand: Operand) -> Operand:
    """Returns a list whose length no iteration changes."""
    if isinstance(operand, TensorList) and isinstance(operand.length, int):
        return replace(operand, keeps_length=True)
    return operand


def _left(before: Operand, after: Operand) -> Operand:
    """Returns a list after a loop, to which the loop's own marks do not apply any more."""
    after = _kept_as(before, after)
    return replace(after, is_long_enough=False, may_be_full=False) if isinstance(after, TensorList) else after


def _kept_as(before: Operand, after: Operand) -> Operand:
    """Returns a list after a loop or a conditional, whose length changes where it did before."""
    if not isinstance(after, TensorList):
        return after
    return replace(after, keeps_length=isinstance(before, TensorList) and before.keeps_length)


LEAST_TRIPS = 64
"""The number of iterations for which lists have room whose lengths depend on data."""


def _room(ctx: Context) -> int | None:
    """Returns for how many iterations a loop's lists have room, where their number is not known: only lists outside of
    regions have lengths that whoever runs the program can read."""
    return None if ctx.room is None or ctx.block is not ctx.state.block else max(ctx.room, LEAST_TRIPS)


def _require_room(ctx: Context, before: Operand, after: Operand) -> None:
    """Adds a list to those whose length is compared with their room, if the loop has given it that."""
    if isinstance(before, TensorList) and before.capacity is None and isinstance(after, TensorList) and after.buffers:
        assert isinstance(after.capacity, int)
        ctx.state.lengths.append((after.count(ctx), after.capacity))


def _is_invariant(body: tf.Graph, index: int) -> bool:
    """Whether a loop's body returns an operand unchanged."""
    tensor = body.outputs[index]
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor.name == body.inputs[index].name or tensor.dtype == tf.resource


def _written(ctx: Context, graph: tf.Graph, operands: Sequence[Operand]) -> list[Variable]:
    """Returns the variables that a function writes; the state of the random generator is one of them."""
    found = [x for i in sorted(written_inputs(graph)) if isinstance(x := operands[i], Variable)]
    return [*found, ctx.state.generator] if ctx.state.generator is not None and draws(graph) else found


def _prepared(ctx: Context, operand: Operand, trips: int | None, growth: Growth | None) -> Operand:
    return operand.grown(ctx, growth and growth.room(trips)) if isinstance(operand, TensorList) else operand


def _lengthened(ctx: Context, operand: Operand, count: int | None) -> Operand:
    """Returns a list that a loop lengthens by writing, with its elements after the loop."""
    if count is None or not isinstance(operand, TensorList) or not isinstance(operand.length, int):
        return operand
    return replace(operand.resized(ctx, max(count, operand.length)), is_long_enough=True)


def _ended(
    operand: Operand, counter: np.ndarray | None, start: Operand, trips: int | None, growth: Growth | None
) -> Operand:
    """Returns an operand after a loop: counters are known if the number of iterations is, and so are the lengths of
    lists."""
    if counter is not None:
        return counter
    if growth is None or not (isinstance(operand, TensorList) and isinstance(start, TensorList)):
        return operand
    if not isinstance(start.length, Value) and (growth.by == 0 or trips is not None):
        return replace(operand, length=start.length + (trips or 0) * growth.by)
    return operand


def _tried(ctx: Context, body: str, operands: list[Operand], start: dict[int, Operand]) -> dict[int, Operand]:
    """Returns the lists whose element form only the loop's body determines, in that form: the body is converted once,
    for this purpose alone."""
    unknown = {i: x for i, x in start.items() if isinstance(x, TensorList) and x.is_empty_yet}
    if not unknown:
        return {}
    with ctx.inside(Block()):
        results = _trial(ctx, body, operands, start)
    if any(isinstance(x := results[i], TensorList) and not _has_known_elements(x) for i in unknown):
        # The sizes of elements are those of values that the program computes, for this purpose alone.
        results = _trial(ctx, body, operands, start)
    return {i: _like_after(ctx, x, results[i]) for i, x in unknown.items()}


def _trial(ctx: Context, body: str, operands: list[Operand], start: dict[int, Operand]) -> Sequence[Operand]:
    """Returns the results of a loop's body for the first iteration; the state stays what it is."""
    saved = dict(ctx.state.values)
    arguments = [_unknown_copy(ctx, start.get(i, x), i in start) for i, x in enumerate(operands)]
    results = ctx.inline(body, *arguments)
    ctx.state.values = saved
    return results


def _has_known_elements(given: TensorList) -> bool:
    return all(None not in rows.type.shape[1:] for rows in given.buffers)


def _allocate(
    ctx: Context,
    body: str,
    operands: list[Operand],
    start: dict[int, Operand],
    trips: int | None,
    stacks: Sequence[Variable],
) -> None:
    """Gives the stacks that a loop fills the rows that it needs: the body is converted once, for this purpose alone."""
    if not stacks:
        return
    before, saved = {x: ctx.state.values[x] for x in stacks}, dict(ctx.state.values)
    with ctx.inside(Block()):
        ctx.inline(body, *(_unknown_copy(ctx, start.get(i, x), i in start) for i, x in enumerate(operands)))
    after, ctx.state.values = ctx.state.values, saved
    for stack, old in before.items():
        new = after[stack]
        if isinstance(old, TensorList) and isinstance(new, TensorList) and not old.buffers:
            growth = new.length - old.length if isinstance(new.length, int) and isinstance(old.length, int) else None
            room = None if trips is None or growth is None else trips * max(growth, 0)
            ctx.state.values[stack] = _like_after(ctx, old.grown(ctx, room), new)


def _like_after(ctx: Context, before: TensorList, after: Operand) -> TensorList:
    """Returns a list before a loop, in the form that it has after the body."""
    if not isinstance(after, TensorList):
        ctx.unsupported("body", f"a list that becomes a {type(after).__name__.lower()}", "a list")
    if after.every is not None:
        return replace(before, element=after.element, every=after.every)
    if not after.buffers:
        return before
    like = replace(before, form=after.form)
    sizes = [[ctx.extent(rows, d) for d in range(1, rows.type.rank)] for rows in after.buffers]
    return like.with_rows(ctx, [(x, rows.type.element_type) for x, rows in zip(sizes, after.buffers, strict=True)])


def _unknown_copy(ctx: Context, operand: Operand, changes: bool) -> Operand:
    """Returns a stand-in for an operand that a loop changes: only its type is known."""
    if not changes or not isinstance(operand, np.ndarray | np.generic):
        return operand
    value = ctx.elements(operand)
    return ctx.add(ops.OptimizationBarrier([value]))[0]


def _require_same_types(ctx: Context, types: Sequence[TensorType], body: Region) -> None:
    for before, value in zip(types, body.terminator.operands, strict=True):
        if before != value.type:
            ctx.unsupported("body", f"a loop variable of type {before} that becomes {value.type}", "one type")


# Conditionals


@rule("If", "StatelessIf")
def conditional(
    ctx: Context, cond: Operand, input: list[Operand], *, then_branch: str, else_branch: str
) -> Sequence[Operand]:
    """If(cond, input...; then_branch, else_branch) -> output..."""
    known = evaluate_known(cond) if isinstance(cond, Value) else cond
    if isinstance(known, np.ndarray):
        return ctx.inline(then_branch if known.size and known.ravel()[0] else else_branch, *input)
    pred = _truth(ctx, cond)

    def build(regions: list[Region]) -> Op:
        return ops.If(pred, *regions)

    return _branches(ctx, [then_branch, else_branch], input, build)


@rule("Case", "StatelessCase")
def case(ctx: Context, branch_index: Operand, input: list[Operand], *, branches: tuple[str, ...]) -> Sequence[Operand]:
    """Case(branch_index, input...; branches) -> output..."""
    known = evaluate_known(branch_index) if isinstance(branch_index, Value) else branch_index
    if isinstance(known, np.ndarray):
        index = int(known)
        return ctx.inline(branches[index if 0 <= index < len(branches) else -1], *input)
    return _branches(ctx, list(branches), input, lambda regions: ops.Case(branch_index, regions))


def _branches(
    ctx: Context, names: Sequence[str], operands: list[Operand], build: Callable[[list[Region]], Op]
) -> list[Operand]:
    """Converts each branch in a region of its own; their results are converted to the same form."""
    graphs = [function_graph(ctx.node.graph, name) for name in names]
    variables = list(dict.fromkeys(x for graph in graphs for x in _written(ctx, graph, operands)))
    blocks, results, states = [], [], []
    before = dict(ctx.state.values)
    for name in names:
        block = Block()
        ctx.state.values = dict(before)
        with ctx.inside(block):
            results.append(ctx.inline(name, *operands))
        blocks.append(block)
        states.append(ctx.state.values)
    ctx.state.values = before
    shapes = [_merged(ctx, alternatives) for alternatives in zip(*results, strict=True)]
    loop = _Carried(ctx, shapes, variables)
    for block, returned, state in zip(blocks, results, states, strict=True):
        with ctx.inside(block):
            alike = [_like(ctx, x, shape) for x, shape in zip(returned, shapes, strict=True)]
            ctx.add(ops.Return(loop.flat(alike, state)))
    _require_same_results(ctx, blocks)
    outcome = ctx.add(build([Region([block]) for block in blocks]))
    return [_kept_as(x, after) for x, after in zip(results[0], loop.unflat(outcome), strict=True)]


def _require_same_results(ctx: Context, blocks: Sequence[Block]) -> None:
    types = [[x.type for x in block.terminator.operands] for block in blocks]
    for first, others in zip(types[0], zip(*types[1:], strict=True), strict=True) if len(types) > 1 else ():
        if any(x != first for x in others):
            ctx.unsupported("branches", f"results of the types {first} and {others[0]}", "one type")


def _merged(ctx: Context, alternatives: Sequence[Operand]) -> Operand:
    """Returns the form that stands for the results that several branches have at one position."""
    first = alternatives[0]
    if all(isinstance(x, Variable) for x in alternatives):
        if any(x is not first for x in alternatives):
            ctx.unsupported("branches", "different variables as a result", "the same one")
        return first
    lists = [x for x in alternatives if isinstance(x, TensorList)]
    if isinstance(first, TensorList) and len(lists) == len(alternatives):
        is_same = isinstance(first.length, int) and all(x.length == first.length for x in lists)
        return replace(first, keeps_length=is_same)
    if held := [value for x in alternatives if isinstance(x, Optional) for value in x.values]:
        kinds: dict[object, list[Operand]] = {}
        for value in held:
            kinds.setdefault(kind_of(value), []).append(value)
        return Optional(tuple(_merged(ctx, alike) for alike in kinds.values()))
    return next((x for x in alternatives if not isinstance(x, Optional)), first)


def _like(ctx: Context, x: Operand, shape: Operand) -> Operand:
    """Returns a branch's result in the form of the one that stands for all; an optional value that it does not have
    becomes zeros, which are never read."""
    if isinstance(x, Optional) and isinstance(shape, Optional):
        pairs = [(form, x.like(form)) for form in shape.values]
        return Optional(tuple(_zeros(ctx, form) if own is None else _like(ctx, own, form) for form, own in pairs))
    if isinstance(x, TensorList) and isinstance(shape, TensorList):
        return replace(x, keeps_length=shape.keeps_length)
    return x


def _zeros(ctx: Context, form: Operand) -> Operand:
    """Returns zeros in the form of another branch's value, none of whose ops may be used here."""
    if not isinstance(form, Value) or form.type.is_static:
        return zeros_of(ctx, form)
    op = form.defining_op
    if not isinstance(op, Op) or op.block is None:
        return zeros_of(ctx, form)
    with ctx.inside(op.block):
        sources = [ctx.extent_origin(form, dimension) for dimension in range(form.type.rank)]
    extents = [ctx.extent(x, d) if stated is None else stated for x, d, stated in sources]
    values = [x if stated is None else scalar_of(ctx, stated) for x, _, stated in sources]
    if any(isinstance(x.defining_op, Op) and x.defining_op.block is op.block for x in values):
        ctx.unsupported("branches", f"a value of type {form.type} that its gradient needs", "sizes from outside")
    return ctx.full(extents, 0, form.type.element_type)


def _truth(ctx: Context, operand: Operand) -> Value:
    """Returns the 0-d boolean that a condition means: a number is true if it is not zero."""
    x = ctx.value(operand, "cond")
    if x.type.rank:
        ctx.unsupported("cond", f"shape {x.type.shape}", "a scalar")
    return x if is_boolean(x.type.element_type) else ctx.compare("NE", x, ctx.constant_like(x, 0))


class _Carried:
    """Operands of many kinds as a flat list of values that cross the edge of a region, and back. After them come the
    variables that are written inside."""

    def __init__(self, ctx: Context, operands: Sequence[Operand], variables: Sequence[Variable]):
        self.ctx = ctx
        self.operands = operands
        self.variables = variables
        self.held = [ctx.state.values[variable] for variable in variables]

    def flat(self, operands: Sequence[Operand], state: dict[Variable, Operand] | None = None) -> list[Value]:
        values = self.ctx.state.values if state is None else state
        whole = [*operands, *(values[variable] for variable in self.variables)]
        return [part for x in whole for part in parts_of(self.ctx, x)]

    def unflat(self, values: Sequence[Value]) -> list[Operand]:
        """Returns the operands again; the variables' values become current."""
        rest = iter(values)
        operands = [whole_of(x, rest) for x in self.operands]
        for variable, form in zip(self.variables, self.held, strict=True):
            if isinstance(form, TensorList):
                self.ctx.state.values[variable] = whole_of(form, rest)
            else:
                self.ctx.state.write(variable, next(rest))
        return operands

    def region(
        self,
        types: Sequence[TensorType],
        convert: Callable[[list[Operand]], Sequence[Operand]],
        finish: Callable[[Sequence[Operand]], list[Value]],
    ) -> Region:
        """Returns a region of one block: `convert` receives its arguments as operands, `finish` turns the results of
        that into values."""
        ctx, saved = self.ctx, dict(self.ctx.state.values)
        block = Block(types)
        with ctx.inside(block):
            results = convert(self.unflat(block.arguments))
            ctx.add(ops.Return(finish(results)))
        ctx.state.values = saved
        return Region([block])


# Checks


@rule("Assert")
def assert_(ctx: Context, condition: Operand, data: list[Operand]) -> None:
    """Assert(condition, data...; summarize=3)"""
    # The language has no op that stops a program; XLA drops assertions too. One that fails already during import is
    # reported here.
    if isinstance(condition, np.ndarray) and not condition.all():
        ctx.unsupported("condition", "false", "an assertion that holds")
