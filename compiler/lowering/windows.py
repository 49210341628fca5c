"""Windows that are separate kernels. `select_and_scatter`: windows slide over the operand, and each adds its source to
the element that it selects. Running folds, such as cumulative sums: each window is one element longer than the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np

from trivium.compiler.kernel import Buffer, Register
from trivium.compiler.lowering import scans
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import (
    Index,
    Indices,
    RunTimeIndex,
    Variable,
    constant,
    fresh,
    indices_of,
    variable,
)
from trivium.compiler.lowering.launches import Launches, Temporary
from trivium.compiler.lowering.reduction import (
    combine_into,
    combiner_name,
    flat,
    grouped,
    guarded,
    widened,
    window_place,
)
from trivium.compiler.lowering.rules import kernel, special_kernel
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Region, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.ops.windows import Window, windows_of
from trivium.ir.types import I64, TensorType, accumulation_type, is_float

SHORT_ROW = 32
"""The length of rows up to which each window is folded in its own order, where results depend on that order by more
than the rounding of sums: few elements are folded again and again."""

SAMPLES = (0, 1, 3, 100)
"""Numbers that show whether an initial value changes others."""

WIDE = 16
"""The length of rows from which on vectors are full if the fold runs across rows."""


@kernel(ops.SelectAndScatter)
def select_and_scatter(launches: Launches, op: ops.SelectAndScatter) -> None:
    """Stores the initial value everywhere, then runs one iteration per window. Overlapping windows may select the same
    element, except windows that differ in a dimension in which nothing slides."""
    shape = op.operand.type.shape
    windows = windows_of(op.window_dimensions or (1,) * len(shape), op.window_strides, op.padding)
    if launches.target.shared_memory_bytes and _can_gather(op, windows):
        _select_then_gather(launches, op, windows)
        return
    everywhere = fresh(shape)
    with launches.kernel("_init") as ctx, ctx.nest(everywhere):
        element = widened(ctx, ctx.element(op.init_value), op.result.type.element_type)
        ctx.store(op.result, indices_of(everywhere), element)
    if 0 in op.source.type.shape:
        return
    counts = fresh(op.source.type.shape)
    sliding = [counts[dimension] for dimension in _sliding(windows)]
    still = [v for v in counts if v not in sliding]
    with launches.kernel() as ctx:
        target = ctx.buffer(op.result, shape, "inout")
        if all(v.extent == 1 for v in still):
            with ctx.nest(sliding):
                _window(ctx, op, windows, indices_of(counts), target)
            return
        with ctx.nest(still), ctx.parallel(sliding):
            _window(ctx, op, windows, indices_of(counts), target)


def _sliding(windows: Sequence[Window]) -> list[int]:
    """Returns the dimensions in which windows slide."""
    return [d for d, window in enumerate(windows) if window != Window(1)]


def _window(
    ctx: LoweringContext, op: ops.SelectAndScatter, windows: Sequence[Window], at: Indices, target: Buffer
) -> None:
    """Selects an element in one window, and scatters to it."""
    shape = op.operand.type.shape
    found, places = _selected(ctx, op, windows, at)
    selected = list(at)
    for dimension, register in zip(_sliding(windows), places, strict=True):
        selected[dimension] = variable(RunTimeIndex(register, shape[dimension] - 1))

    def update() -> list[Scalar]:
        combine_into(ctx, op.scatter, [(target, tuple(selected))], [ctx.element(op.source, at)])
        return []

    guarded(ctx, found, update, [])


def _selected(
    ctx: LoweringContext, op: ops.SelectAndScatter, windows: Sequence[Window], at: Indices
) -> tuple[Register | None, list[Register]]:
    """Returns whether a window selects an element (None: always), and its place along the dimensions in which windows
    slide."""
    kind = op.operand.type.element_type
    nowhere = [ctx.b.index(0) for _ in _sliding(windows)]
    inits = [ctx.b.constant(False, "i1"), *flat([ctx.literal(0, kind)]), *nowhere]
    variables = [v for v in fresh([window.size for window in windows]) if v.extent != 1]
    inner = iter(variables)
    offsets = indices_of([next(inner) if window.size != 1 else Variable(1) for window in windows])
    if variables:
        frame = ctx.b.sequential(*[v.extent for v in variables], inits=inits)
        with ctx.inside(frame, variables):
            frame.yield_(*_better(ctx, op, windows, at, offsets, frame.carried))
        found = frame.results
    else:
        found = _better(ctx, op, windows, at, offsets, inits)
    # A window that is entirely padding selects nothing.
    empty = any(window.low >= window.size or window.high >= window.size for window in windows)
    return found[0] if empty else None, found[2 + is_pair(kind) :]


def _better(
    ctx: LoweringContext,
    op: ops.SelectAndScatter,
    windows: Sequence[Window],
    at: Indices,
    offsets: Indices,
    carried: Sequence[Register],
) -> list[Register]:
    """Returns the selection after considering the element at `offsets`: whether anything is selected, its value, and
    its place along the dimensions in which windows slide."""
    b, kind = ctx.b, op.operand.type.element_type
    inside, place = window_place(ctx, windows, op.operand.type.shape, at, offsets)
    first = 2 + is_pair(kind)
    (best,) = grouped(carried[1:first], [kind])

    def challenge() -> list[Scalar]:
        candidate = ctx.element(op.operand, place)
        (stays,) = flat(ctx.region(op.select, [best, candidate]))
        takes = b.apply("or", b.apply("not", carried[0]), b.apply("not", stays))
        here = [ctx.position(place[dimension]) for dimension in _sliding(windows)]
        values = [b.select(takes, new, old) for new, old in zip(flat([candidate]), flat([best]), strict=True)]
        where = [b.select(takes, new, old) for new, old in zip(here, carried[first:], strict=True)]
        return [b.constant(True, "i1"), *values, *where]

    return flat(guarded(ctx, inside, challenge, list(carried)))


def _can_gather(op: ops.SelectAndScatter, windows: Sequence[Window]) -> bool:
    """Whether it is known which windows have an element, and how their sources are added up."""
    kinds = op.operand.type.element_type, op.result.type.element_type
    return 0 not in op.source.type.shape and not any(map(is_pair, kinds)) and all(one.low >= 0 for one in windows)


def _select_then_gather(launches: Launches, op: ops.SelectAndScatter, windows: Sequence[Window]) -> None:
    """Stores the place that each window selects, then looks for each element at the windows that have it, in their
    order. No element has to wait for another one."""
    shape, sliding = op.operand.type.shape, _sliding(windows)
    counts = op.source.type.shape
    places, variables = Temporary(TensorType(counts, I64), op), fresh(counts)
    with launches.kernel("_places") as ctx, ctx.nest(variables):
        at, b = indices_of(variables), ctx.b
        found, selected = _selected(ctx, op, windows, at)
        place = b.index(0)
        for dimension, register in zip(sliding, selected, strict=True):
            place = b.apply("add", b.apply("multiply", place, b.index(shape[dimension])), register)
        ctx.store(places, at, place if found is None else b.select(found, place, b.index(-1)))
    everywhere, last = fresh(shape), {d: -(-windows[d].size // windows[d].stride) - 1 for d in sliding}
    turns = fresh([last[d] + 1 for d in sliding])
    turn_at = dict(zip(sliding, indices_of(turns), strict=True))
    repeated = [turn for turn in turns if turn.extent != 1]
    kind = op.scatter.arguments[0].type.element_type
    with launches.kernel() as ctx, ctx.nest(everywhere):
        at, b = indices_of(everywhere), ctx.b
        own: Index = constant(0)
        for dimension in sliding:
            own = own * shape[dimension] + at[dimension]
        window = list(at)
        total = widened(ctx, ctx.element(op.init_value), kind)

        def added(total: Scalar) -> list[Scalar]:
            """Adds the source of a window that may have selected this element."""
            inside: Register | None = None
            for d in sliding:
                window[d] = (at[d] + windows[d].low) // windows[d].stride - last[d] + turn_at[d]
                low, high = window[d].range
                tests = [ctx.b.compare("GE", ctx.position(window[d]), 0)] if low < 0 else []
                tests += [ctx.b.compare("LE", ctx.position(window[d]), counts[d] - 1)] if high >= counts[d] else []
                for test in tests:
                    inside = test if inside is None else ctx.b.apply("and", inside, test)

            def sum_up() -> list[Scalar]:
                (selected,) = flat([ctx.load(places, tuple(window))])
                mine = ctx.b.compare("EQ", selected, ctx.position(own))
                source = widened(ctx, ctx.element(op.source, tuple(window)), kind)
                return guarded(ctx, mine, lambda: ctx.region(op.scatter, [total, source]), [total])

            return guarded(ctx, inside, sum_up, [total])

        if repeated:
            frame = b.sequential(*[turn.extent for turn in repeated], inits=flat([total]))
            with ctx.inside(frame, repeated):
                frame.yield_(*flat(added(frame.carried[0])))
            (total,) = frame.results
        else:
            (total,) = added(total)
        ctx.store(op.result, at, widened(ctx, total, op.result.type.element_type))


# Running folds


def running_dimension(op: ops.ReduceWindow) -> int | None:
    """Returns the dimension along which the op is a running fold: result i folds the elements up to i (or from i on).
    Padding must not change the result, because it is left out."""
    windows = windows_of(op.window_dimensions, op.window_strides, op.padding, op.base_dilations, op.window_dilations)
    sliding = [d for d, window in enumerate(windows) if window != Window(1)]
    if len(sliding) != 1:
        return None
    extent = op.inputs[0].type.shape[sliding[0]]
    forward, backward = Window(extent, low=extent - 1), Window(extent, high=extent - 1)
    if extent < 2 or windows[sliding[0]] not in (forward, backward):
        return None
    free = extent > SHORT_ROW or combiner_name(op.body) is not None
    return sliding[0] if starts_neutral(op) or (free and starts_settled(op)) else None


def starts_settled(op: ops.ReduceWindow) -> bool:
    """Whether any number of initial values before an element, or after one, is worth one, as for the log of a sum of
    exponentials. Combinations are associative: before elements, initial values that remain what they are, bit for bit,
    when they are combined with themselves are enough. A fold that begins at the last element begins with them, too:
    there they must change no element, which samples show."""
    constants = [start.defining_op for start in op.init_values]
    if [argument.type for argument in op.body.arguments] != [start.type for start in op.init_values] * 2:
        return False
    starts = [known.value.array for known in constants if isinstance(known, ops.Constant)]
    if len(starts) < len(constants) or not _is_elementwise(op.body):
        return False
    if [one.tobytes() for one in _combined(op.body, starts, starts)] != [start.tobytes() for start in starts]:
        return False
    if not any(high > 0 for _, high in op.padding or ()):
        return True
    samples = [[np.array(number + place).astype(one.dtype) for place, one in enumerate(starts)] for number in SAMPLES]
    return all(_combined(op.body, *pair) == x for x in samples for pair in ((x, starts), (starts, x)))


def _is_elementwise(body: Region) -> bool:
    """Whether a region has only elementwise ops, without regions of their own, and constants."""
    own = {*body.arguments, *(result for op in body.block for result in op.results)}
    steps = [op for op in body.block if op is not body.terminator]
    plain = all(isinstance(op, Op) and (isinstance(op, ops.Constant) or op.has_trait(ELEMENTWISE)) for op in steps)
    return plain and not any(op.regions for op in steps) and all(own.issuperset(op.operands) for op in body.block)


def _combined(body: Region, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluates a region of elementwise ops."""
    values: dict[Value, Any] = dict(zip(body.arguments, [*one, *other], strict=True))
    for op in body.block:
        if isinstance(op, Op) and op is not body.terminator:
            values[op.results[0]] = evaluate_op(op, [values[operand] for operand in op.operands])
    return [values[operand] for operand in body.terminator.operands]


def starts_neutral(op: ops.ReduceWindow) -> bool:
    """Whether the initial value is known to be neutral."""
    name, start = combiner_name(op.body), op.init_values[0].defining_op
    if name is None or not isinstance(start, ops.Constant) or is_pair(start.result.type.element_type):
        return False
    value = start.value.array.reshape(())
    kind = value.dtype
    if name in ("maximum", "minimum") and kind != np.bool_:
        floating = is_float(start.result.type.element_type)
        limits = (-np.inf, np.inf) if floating else (ml_dtypes.iinfo(kind).min, ml_dtypes.iinfo(kind).max)
        return bool(value == limits[name == "minimum"])
    return name in ("add", "multiply") and bool(value == (name == "multiply")) and kind != np.bool_


Write = Callable[[LoweringContext, Sequence[Scalar]], None]
"""Stores what is made of the results at one place."""


@special_kernel(ops.ReduceWindow, lambda op: running_dimension(op) is not None)
def running_fold(launches: Launches, op: ops.ReduceWindow) -> None:
    """Emits one pass: each result is the previous one folded with one more element."""
    dimension, shape = running_dimension(op), op.inputs[0].type.shape
    assert dimension is not None
    variables = fresh(shape)
    extent, rows = shape[dimension], math.prod(shape[:dimension] + shape[dimension + 1 :])
    in_groups = launches.target.shared_memory_bytes and extent >= scans.SHORTEST and rows < scans.PLENTY
    if in_groups and starts_neutral(op) and not _is_shared(op, dimension, launches.target):
        _running_fold_in_groups(launches, op, variables, dimension)
        return

    def write(ctx: LoweringContext, total: Sequence[Scalar]) -> None:
        for result, scalar in zip(op.results, total, strict=True):
            ctx.store(result, indices_of(variables), scalar)

    fold_running(launches, op, variables, write)


def fold_running(launches: Launches, op: ops.ReduceWindow, variables: Sequence[Variable], write: Write) -> None:
    """Emits one pass over the elements of the operands, whose indices are `variables`."""
    dimension = running_dimension(op)
    assert dimension is not None, "the op is a running fold"
    plain = [argument.type.element_type for argument in op.body.arguments[: len(op.inputs)]]
    is_sum = combiner_name(op.body) == "add"  # rounded to bf16 after each step, a sum of 300 ones would stay at 256
    kinds = [accumulation_type(kind) for kind in plain] if is_sum else plain
    along, at = variables[dimension], indices_of(variables)
    shared = _is_shared(op, dimension, launches.target)
    with launches.kernel() as ctx, ctx.nest([v for v in variables if v is not along]):
        inits = [widened(ctx, ctx.element(init), kind) for init, kind in zip(op.init_values, kinds, strict=True)]
        frame = ctx.b.sequential(along.extent, inits=flat(inits), combiner=combiner_name(op.body) if shared else None)
        with ctx.block(frame) as turn:
            number = variable(turn.indices[0])
            ctx.bind(along, _last_first(number, along.extent) if _is_reverse(op, dimension) else number)
            elements = [ctx.element(operand, at) for operand in op.inputs]
            elements = [widened(ctx, element, kind) for element, kind in zip(elements, kinds, strict=True)]
            total = _folded(ctx, op, grouped(frame.carried, kinds), elements, shared or kinds != plain)
            write(ctx, [widened(ctx, scalar, r.type.element_type) for scalar, r in zip(total, op.results, strict=True)])
            frame.yield_(*flat(total))


def _is_reverse(op: ops.ReduceWindow, dimension: int) -> bool:
    """Whether result i folds the elements from i on."""
    return op.padding[dimension][1] > 0  # type: ignore[index]


def _last_first(number: Index, extent: int) -> Index:
    return number * -1 + (extent - 1)


def _is_shared(op: ops.ReduceWindow, dimension: int, target: Target) -> bool:
    """Whether lanes or threads share each row of a running fold, in one launch: neighbours along it are neighbours in
    memory, and there are either many rows, or they are not long. Lanes do not share what is rounded after each step."""
    shape, kind = op.inputs[0].type.shape, op.body.arguments[0].type.element_type
    extent = shape[dimension]
    if not target.scans or dimension != len(shape) - 1 or extent < scans.SHORTEST or not starts_neutral(op):
        return False
    if not target.shared_memory_bytes:
        return len(op.results) == 1 and (not is_float(kind) or dtype_of(kind) in ("f32", "f64"))
    return extent <= scans.LONG or math.prod(shape[:-1]) >= scans.MANY


def takes_tail(op: Operation, target: Target) -> TypeGuard[ops.ReduceWindow]:
    """Whether the loop of a running fold can also compute, in vectors, what is made of each of its results."""
    if not isinstance(op, ops.ReduceWindow) or len(op.results) != 1 or (dimension := running_dimension(op)) is None:
        return False
    across = dimension < op.results[0].type.rank - 1 and op.results[0].type.shape[-1] >= WIDE
    return _is_shared(op, dimension, target) or (across and not target.shared_memory_bytes)


def _folded(
    ctx: LoweringContext, op: ops.ReduceWindow, carried: Sequence[Scalar], elements: Sequence[Scalar], by_name: bool
) -> Sequence[Scalar]:
    """Returns what is carried, folded with one more element, in the order of the elements."""
    name, dimension = combiner_name(op.body), running_dimension(op)
    if not by_name:
        assert dimension is not None, "the op is a running fold"
        turned = name is None and _is_reverse(op, dimension)
        return ctx.region(op.body, [*elements, *carried] if turned else [*carried, *elements])
    assert name is not None, "what is shared or wider than the body is folded by a named operation"
    return [ctx.b.apply(name, carried[0], elements[0])]  # type: ignore[arg-type]


def _running_fold_in_groups(
    launches: Launches, op: ops.ReduceWindow, variables: Sequence[Variable], dimension: int
) -> None:
    """Emits the launches in which groups of threads share the rows."""
    kind, (result,), (start,) = op.body.arguments[0].type.element_type, op.results, op.init_values
    extent, name = variables[dimension].extent, combiner_name(op.body)
    assert name is not None, "a running fold has a named operation"
    assert isinstance(start.defining_op, ops.Constant), "a running fold begins with a constant"

    def place(at: Index) -> Indices:
        around = list(indices_of(variables))
        around[dimension] = _last_first(at, extent) if _is_reverse(op, dimension) else at
        return tuple(around)

    def read(ctx: LoweringContext, at: Index) -> Scalar:
        return widened(ctx, ctx.element(op.inputs[0], place(at)), kind)

    def write(ctx: LoweringContext, at: Index, scalar: Scalar) -> None:
        ctx.store(result, place(at), widened(ctx, scalar, result.type.element_type))

    outer = [v for d, v in enumerate(variables) if d != dimension]
    neutral = start.defining_op.value.array.reshape(())
    scans.emit(launches, scans.Scan(op, outer, extent, kind, name, neutral), read, write)
