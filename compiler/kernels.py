"""The kernel of a group of fused ops: its loops, and in them what the members' rules compute. Three forms: one parallel
loop over the outputs; a parallel loop over points with reductions and loops over a row inside; a contraction with an
epilogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

from trivium.compiler.costs import is_expensive, is_fold, is_free
from trivium.compiler.fusion import Group
from trivium.compiler.kernel import Contraction, Kernel, contraction_kernel
from trivium.compiler.kernel import Value as Register
from trivium.compiler.lowering import kernel_rule
from trivium.compiler.lowering.context import Context
from trivium.compiler.lowering.contraction import Loops, accumulate_type, loops_of, operand_order, prologue
from trivium.compiler.lowering.elementwise import converted
from trivium.compiler.lowering.index import Index, Indices, Variable, places, variable
from trivium.compiler.lowering.launches import Argument, Launches
from trivium.compiler.lowering.origins import origin_of
from trivium.compiler.lowering.reduction import commutes, reduce_together
from trivium.compiler.lowering.scalars import dtype_of
from trivium.compiler.requests import Opaque, Request
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error


def build(group: Group, name: str, target: Target) -> list[tuple[Kernel, Sequence[Argument]]]:
    """The kernels of a group, and the values that their parameters are bound to, in the order of their launches."""
    launches = Launches(name, group.members, target)
    last = next(iter(group.members))
    try:
        if group.whole is not None:
            kernel_rule(group.whole)(launches, group.whole)  # type: ignore[misc]
        elif group.contraction is not None:
            ctx = Context(name, group.members)
            launches.add(_contraction(ctx, group), ctx.arguments)
        elif group.points is not None:
            with launches.kernel() as ctx:
                _rows(ctx, group, target)
        elif isinstance(last, ops.Concatenate) and list(group.outputs) == [last.result]:
            _pieces(launches, last)
        elif isinstance(last, ops.Pad) and list(group.outputs) == [last.result] and _only_adds(last):
            _padded(launches, last)
        else:
            with launches.kernel() as ctx, ctx.nest(group.space):
                for value, indices in group.outputs.items():
                    ctx.store(value, indices, ctx.element(value, indices))
        return launches.finished
    except Error as error:
        raise error.add(**origin_of(last), during=f"lowering to kernel {name}") from None


def _pieces(launches: Launches, op: ops.Concatenate) -> None:
    """A concatenation as one launch for each operand: no branches inside."""
    start = 0
    for number, operand in enumerate(op.inputs):
        if operand.type.size:
            variables = [Variable(extent) for extent in operand.type.shape]
            with launches.kernel(f"_piece{number}") as ctx, ctx.nest(variables):
                at = places(variables)
                target = tuple(index + (start if d == op.dimension else 0) for d, index in enumerate(at))
                ctx.store(op.result, target, ctx.element(operand, at))
        start += operand.type.shape[op.dimension]


def _only_adds(op: ops.Pad) -> bool:
    """Whether no element of the operand is cut off."""
    return min((*op.edge_padding_low, *op.edge_padding_high, 0)) == 0


def _padded(launches: Launches, op: ops.Pad) -> None:
    """The padding everywhere, then the operand where it stands: again no branches inside."""
    everywhere = [Variable(extent) for extent in op.result.type.shape]
    with launches.kernel("_padding") as ctx, ctx.nest(everywhere):
        ctx.store(op.result, places(everywhere), ctx.element(op.padding_value))
    if not op.operand.type.size:
        return
    variables = [Variable(extent) for extent in op.operand.type.shape]
    with launches.kernel("_operand") as ctx, ctx.nest(variables):
        at = places(variables)
        steps = zip(at, op.interior_padding, op.edge_padding_low, strict=True)
        target = tuple(index * (interior + 1) + low for index, interior, low in steps)
        ctx.store(op.result, target, ctx.element(op.operand, at))


# Rows


def _rows(ctx: Context, group: Group, target: Target) -> None:
    """Parallel over the points. What holds for a whole point is computed once for it, reductions that do not depend on
    each other in one loop; intermediates of the row that are expensive and used by several loops are stored."""
    kept, levels = _kept(group, target), _levels(group)
    members = group.ordered()
    for op in members:
        if is_fold(op):
            ctx.reduced[op] = _reduced_variables(op, group.row)
    with ctx.nest(group.points or ()):
        for level in range(max(levels.values()) + 1):
            _reduce(ctx, group, [op for op in members if is_fold(op) and levels[op] == level])
            for op in members:
                if is_fold(op) or levels[op] != level:
                    continue
                request = group.sole_request(op)
                if request is None or isinstance(request, Opaque):
                    continue
                if op in kept:
                    _keep(ctx, group, op, request)
                elif _is_of_point(request, group.row) and not is_free(op):
                    ctx.element(op.results[0], request)
        _store_row(ctx, group)


def _levels(group: Group) -> dict[Operation, int]:
    """How many reductions stand one behind the other on the way to each member, itself included."""
    levels: dict[Operation, int] = {}
    for op in group.ordered():
        behind = [levels[source] for value in op.operands if (source := value.defining_op) in levels]
        levels[op] = max(behind, default=0) + is_fold(op)
    return levels


def _reduce(ctx: Context, group: Group, folds: Sequence[ops.Reduce]) -> None:
    """Reductions that do not depend on each other."""
    asked = [(op, request) for op in folds if (request := group.sole_request(op)) is not None]
    together = [(op, request) for op, request in asked if commutes(op.body)]
    if len(together) > 1:
        reduce_together(ctx, together)  # type: ignore[arg-type]
    for op, request in asked:
        if len(together) < 2 or (op, request) not in together:
            ctx.element(op.results[0], request)  # type: ignore[arg-type]


def _reduced_variables(op: ops.Reduce, row: Sequence[Variable]) -> tuple[Variable, ...]:
    """The row's variables for each reduced dimension, unit ones included."""
    shape = op.inputs[0].type.shape
    variables = iter([v for v in row if v.extent != 1])
    return tuple(Variable(1) if shape[d] == 1 else next(variables) for d in sorted(op.dimensions))


def _is_of_point(request: Request, row: Sequence[Variable]) -> bool:
    return not isinstance(request, Opaque) and not any(v in row for index in request for v in index.variables())


def _store_row(ctx: Context, group: Group) -> None:
    """Stores the outputs that are not stored yet: of the point, then of the row in one loop."""
    rest = [(value, at) for value, at in group.outputs.items() if not ctx.is_written(value)]
    for value, at in rest:
        if _is_of_point(at, group.row):
            ctx.store(value, at, ctx.element(value, at))
    of_row = [(value, at) for value, at in rest if not _is_of_point(at, group.row)]
    if of_row:
        with ctx.parallel(group.row):
            for value, at in of_row:
                ctx.store(value, at, ctx.element(value, at))


def _kept(group: Group, target: Target) -> set[Operation]:
    """The members whose results are stored for the row: expensive, and needed by several of its loops."""
    size = math.prod(v.extent for v in group.row)
    if size > target.fusion.scratch_row:
        return set()
    loops = [list(op.operands) for op in group.members if is_fold(op)]
    loops.append([value for value, at in group.outputs.items() if not _is_of_point(at, group.row)])
    counts: dict[Operation, int] = {}
    for roots in loops:
        for op in _behind(group, roots):
            counts[op] = counts.get(op, 0) + 1
    kept: set[Operation] = set()
    room = target.fusion.scratch_bytes
    for op in group.ordered():
        if counts.get(op, 0) > 1 and is_expensive(op, target) and _spans(group, op):
            value = op.results[0]
            needed = 0 if value in group.outputs else size * value.type.dtype.itemsize
            if needed <= room:
                room -= needed
                kept.add(op)
    return kept


def _spans(group: Group, op: Operation) -> bool:
    """Whether the op is asked for at the whole row, in one way."""
    request = group.sole_request(op)
    if request is None or isinstance(request, Opaque) or len(op.results) != 1:
        return False
    return {v for v in group.row if v.extent != 1} <= {index.variable for index in request}


def _behind(group: Group, roots: Sequence[Value]) -> set[Operation]:
    """The members that `roots` follow from, not seen through reductions: those are computed before."""
    found: set[Operation] = set()
    pending = list(roots)
    while pending:
        op = pending.pop().defining_op
        if op is None or op in found or op not in group.members or is_fold(op):
            continue
        found.add(op)
        pending.extend(op.operands)
    return found


def _keep(ctx: Context, group: Group, op: Operation, request: Indices) -> None:
    """Computes an intermediate for the whole row, and stores it: in its buffer where it has one, else in scratch."""
    value = op.results[0]
    if value in group.outputs:
        with ctx.parallel(group.row):
            ctx.store(value, request, ctx.element(value, request))
        ctx.redirect(value, request, *ctx.written_place(value))
        return
    row = [v for v in group.row if v.extent != 1]
    buffer = ctx.scratch(value.type.element_type, [v.extent for v in row])
    with ctx.parallel(row):
        ctx.write(buffer, places(row), ctx.element(value, request))
    ctx.redirect(value, request, buffer, places(row))


# Contractions


def _contraction(ctx: Context, group: Group) -> Kernel:
    """The marked kernel; the epilogue computes and stores the outputs."""
    op = group.contraction
    assert op is not None
    loops = loops_of(op)
    accesses = []
    for side, operand in zip(("lhs", "rhs"), op.operands, strict=True):
        source, order = operand_order(operand)
        buffer = ctx.buffer(source, source.type.shape, "in")
        accesses.append(loops.access(buffer, side, order))
    kind = op.results[0].type.element_type
    accumulate = dtype_of(accumulate_type(kind))
    outer = [name for name, loop in loops.loops.items() if loop.role != "k"]
    with ExitStack() as stack:
        block = stack.enter_context(ctx.block(ctx.b.block(accumulate, *["i64"] * len(outer))))
        total, registers = block.parameters[0], dict(zip(outer, block.parameters[1:], strict=True))
        for v, names in zip(group.space, loops.result, strict=True):
            ctx.bind(v, _result_index(loops, names, registers))
        at = places(group.space)
        ctx.know(op.results[0], at, converted(ctx, total, kind))
        for value, indices in group.outputs.items():
            ctx.store(value, indices, ctx.element(value, indices))
    prologues = [prologue(ctx, op, side, accumulate, len(loops.loops)) for side in ("lhs", "rhs")]
    extents = tuple(loops.loops.values())
    contraction = Contraction(extents, *accesses, accumulate, block, *prologues)  # type: ignore[arg-type]
    return contraction_kernel(ctx.b.name, ctx.b.params, contraction)


def _result_index(loops: Loops, names: Sequence[str], registers: dict[str, Register]) -> Index:
    """The index along one dimension of the result, which may be split into an outer and an inner loop."""
    index = variable(registers[names[0]])
    for name in names[1:]:
        index = index * loops.loops[name].extent + variable(registers[name])
    return index
