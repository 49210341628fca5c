"""Matrix products and convolutions, as marked kernels (`compiler.kernel.contraction`) or, if the mark cannot express
them, as plain sums of products."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trivium.compiler.kernel import Access, Block, Buffer, ContractionLoop, Register, Subscript
from trivium.compiler.kernel.builder import LoopFrame
from trivium.compiler.lowering import complex as complex_numbers
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.elementwise import converted
from trivium.compiler.lowering.index import (
    Index,
    Indices,
    constant,
    every_place,
    fresh,
    indices_of,
    linearize,
    variable,
)
from trivium.compiler.lowering.reduction import flat, grouped, guarded
from trivium.compiler.lowering.rules import element
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair
from trivium.compiler.target import MatrixInstruction, Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.ops.windows import Window, windows_of
from trivium.ir.types import ComplexType, Type, accumulation_type, is_boolean, is_integer


@dataclass(frozen=True)
class Loops:
    """The loops of a contraction by name, and how its tensors' dimensions follow from them. `result` names the loop of
    each dimension of the result, or the two loops (outer, inner) of a dimension that is split into groups."""

    loops: dict[str, ContractionLoop]
    lhs: tuple[Subscript, ...]
    rhs: tuple[Subscript, ...]
    result: tuple[tuple[str, ...], ...]

    def access(self, buffer: Buffer, side: str, order: Sequence[int] | None = None) -> Access:
        """Returns the access to an operand whose buffer has its dimensions in `order`."""
        dimensions = self.lhs if side == "lhs" else self.rhs
        if order is not None:
            dimensions = tuple(dimensions[d] for d in order)
        return Access(buffer, dimensions)

    def divided(self, extents: Sequence[Sequence[int]]) -> Loops:
        """Returns the same with several loops, of these extents, for each dimension of the result."""
        own: dict[str, dict[str, ContractionLoop]] = {}
        for (name,), parts in zip(self.result, extents, strict=True):
            loop = self.loops[name]
            divided = {f"{name}_{n}": ContractionLoop(loop.role, extent) for n, extent in enumerate(parts)}
            own[name] = divided if len(parts) > 1 else {name: loop}
        places = {}
        for name, parts in own.items():
            indices, sizes = zip(*((variable(one), one.extent) for one in parts.values()), strict=True)
            places[self.loops[name]] = linearize(indices, sizes)
        lhs, rhs = (
            tuple(replace(one, position=one.position.replace(places.get)) for one in side)  # type: ignore[arg-type]
            for side in (self.lhs, self.rhs)
        )
        loops = {new: loop for name, one in self.loops.items() for new, loop in own.get(name, {name: one}).items()}
        return Loops(loops, lhs, rhs, tuple(tuple(own[name]) for (name,) in self.result))


def dot_loops(op: ops.DotGeneral) -> Loops:
    numbers = op.dot_dimension_numbers
    lhs_shape, rhs_shape = op.lhs.type.shape, op.rhs.type.shape
    loops: dict[str, ContractionLoop] = {}
    lhs: dict[int, str] = {}
    rhs: dict[int, str] = {}

    def pair(role: str, left: Sequence[int], right: Sequence[int]) -> None:
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            name = f"{role}{number}"
            loops[name] = ContractionLoop(role, lhs_shape[one])  # type: ignore[arg-type]
            lhs[one], rhs[other] = name, name

    def free(role: str, shape: Sequence[int], names: dict[int, str], taken: Sequence[int]) -> None:
        for dimension, extent in enumerate(shape):
            if dimension not in taken:
                name = f"{role}{dimension}"
                loops[name], names[dimension] = ContractionLoop(role, extent), name  # type: ignore[arg-type]

    left, right = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    pair("batch", numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)
    free("m", lhs_shape, lhs, (*numbers.lhs_batching_dimensions, *left))
    free("n", rhs_shape, rhs, (*numbers.rhs_batching_dimensions, *right))
    result = tuple((name,) for name in loops)
    pair("k", left, right)
    left_side, right_side = (
        tuple(Subscript(variable(loops[names[d]])) for d in range(len(names))) for names in (lhs, rhs)
    )
    return Loops(loops, left_side, right_side, result)


def convolution_loops(op: ops.Convolution) -> Loops:
    """Groups become a batch loop: feature groups split the features of lhs and result, batch groups the batch of
    lhs."""
    n = op.dimension_numbers
    windows = conv_windows(op)
    lhs_shape, rhs_shape, shape = op.lhs.type.shape, op.rhs.type.shape, op.result.type.shape
    groups = op.feature_group_count * op.batch_group_count
    batch, kernels = shape[n.output_batch_dimension], rhs_shape[n.kernel_output_feature_dimension] // groups
    inputs = rhs_shape[n.kernel_input_feature_dimension]
    loops = {"group": ContractionLoop("batch", groups)} if groups > 1 else {}
    loops["image"] = ContractionLoop("m", batch)
    counts = [shape[dimension] for dimension in n.output_spatial_dimensions]
    loops |= {f"place{i}": ContractionLoop("m", count) for i, count in enumerate(counts)}
    loops["kernel"] = ContractionLoop("n", kernels)
    loops |= {f"tap{i}": ContractionLoop("k", window.size) for i, window in enumerate(windows)}
    loops["input"] = ContractionLoop("k", inputs)
    at = {name: variable(loop) for name, loop in loops.items()}
    group = at.get("group", constant(0))
    grouped_batch, grouped_features = op.batch_group_count > 1, op.feature_group_count > 1
    lhs = {
        n.input_batch_dimension: Subscript(at["image"] + group * batch if grouped_batch else at["image"]),
        n.input_feature_dimension: Subscript(at["input"] + group * inputs if grouped_features else at["input"]),
    }
    rhs = {
        n.kernel_output_feature_dimension: Subscript(at["kernel"] + group * kernels),
        n.kernel_input_feature_dimension: Subscript(at["input"]),
    }
    for i, window in enumerate(windows):
        tap = at[f"tap{i}"]
        position = at[f"place{i}"] * window.stride + tap * window.dilation - window.low
        lhs[n.input_spatial_dimensions[i]] = Subscript(position, window.base_dilation)
        reverse = op.window_reversal is not None and op.window_reversal[i]
        rhs[n.kernel_spatial_dimensions[i]] = Subscript(tap * -1 + (window.size - 1) if reverse else tap)
    result: dict[int, tuple[str, ...]] = {
        n.output_batch_dimension: ("image",),
        n.output_feature_dimension: ("kernel",),
    }
    if groups > 1:
        result[n.output_feature_dimension] = ("group", "kernel")
    result |= {dimension: (f"place{i}",) for i, dimension in enumerate(n.output_spatial_dimensions)}
    rank = range(len(lhs_shape))
    left_side, right_side = (tuple(side[d] for d in rank) for side in (lhs, rhs))
    return Loops(loops, left_side, right_side, tuple(result[d] for d in rank))


def by_places(loops: Loops) -> Loops:
    """Returns the loops of a convolution with those of its places and taps around those of features: as an image whose
    features are innermost lies in memory if the convolution is a gradient of a kernel, whose batch is features."""
    inner = {"m": "image", "k": "input"}

    def place(name: str) -> tuple[int, bool]:
        role = loops.loops[name].role
        # Sums run over images first.
        return ["batch", "m", "n", "k"].index(role), (name == inner.get(role)) == (role == "m")

    return replace(loops, loops={name: loops.loops[name] for name in sorted(loops.loops, key=place)})


def conv_windows(op: ops.Convolution) -> list[Window]:
    sizes = [op.rhs.type.shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions]
    return windows_of(sizes, op.window_strides, op.padding, op.lhs_dilation, op.rhs_dilation)


def loops_of(op: Operation) -> Loops:
    return dot_loops(op) if isinstance(op, ops.DotGeneral) else convolution_loops(op)  # type: ignore[arg-type]


def is_markable(op: Operation) -> bool:
    """Whether the mark can express the op: its numbers are neither complex nor boolean."""
    kinds = [value.type.element_type for value in (*op.operands, *op.results)]
    return not any(isinstance(kind, ComplexType) or is_boolean(kind) for kind in kinds)


def matrix_instruction(op: ops.DotGeneral | ops.Convolution, target: Target) -> MatrixInstruction | None:
    """Returns the target's instruction that multiplies tiles of the op's operands."""
    lhs, rhs = (dtype_of(operand.type.element_type) for operand in op.operands)
    return target.matrix_instruction(lhs, rhs, dtype_of(accumulation_type(op.result.type.element_type)))


def rounds(op: Operation, side: str) -> bool:
    """Whether the op's algorithm uses an operand in less than its own precision."""
    algorithm = getattr(op, "algorithm", None)
    if algorithm is None:
        return False
    precision, kind = getattr(algorithm, f"{side}_precision_type"), getattr(op, side).type.element_type
    return is_integer(kind) or (precision is not kind and precision.width < kind.width)


def rounded(ctx: LoweringContext, op: Operation, side: str, x: Scalar) -> Scalar:
    """Returns an operand's element as the op's algorithm uses it: the sum of its leading parts, each rounded to the
    precision type."""
    if not rounds(op, side) or isinstance(x, tuple):
        return x
    if is_integer(getattr(op, side).type.element_type):
        wide = ctx.b.convert(x, "f64")
        return ctx.b.convert(_leading_parts(ctx, op, side, wide), x.dtype)
    return _leading_parts(ctx, op, side, x)


def _leading_parts(ctx: LoweringContext, op: Operation, side: str, x: Register) -> Register:
    precision = getattr(op.algorithm, f"{side}_precision_type")  # type: ignore[attr-defined]
    total, rest = ctx.b.constant(0.0, x.dtype), x
    for _ in range(op.algorithm.parts(side)):  # type: ignore[attr-defined]
        if str(precision) == "tf32":
            part = ctx.b.apply("reduce_precision", rest, exponent_bits=8, mantissa_bits=10)
        else:
            part = ctx.b.convert(ctx.b.convert(rest, dtype_of(precision)), x.dtype)
        total = ctx.b.add(total, part)
        # An infinite part leaves no rest.
        rest = ctx.b.select(ctx.b.apply("is_finite", part), ctx.b.subtract(rest, part), 0.0)
    return total


def prologue(ctx: LoweringContext, op: Operation, side: str, accumulate: str, loops: int) -> Block | None:
    """Returns the computation on an operand's elements before a marked contraction; None if they are only converted."""
    if not rounds(op, side):
        return None
    kind = getattr(op, side).type.element_type
    with ctx.block(ctx.b.block(dtype_of(kind), *["i64"] * loops)) as block:
        element_ = ctx.b.convert(block.parameters[0], accumulate)
        block.yields = flat([rounded(ctx, op, side, element_)])
    return block


def operand_order(value: Value) -> tuple[Value, tuple[int, ...]]:
    """Returns the tensor that an operand is a transpose of and, for each of its dimensions, the corresponding dimension
    of the operand."""
    order = tuple(range(value.type.rank))
    while isinstance(value.defining_op, ops.Transpose):
        permutation = value.defining_op.permutation
        value = value.defining_op.operand
        # Dimension d of the transpose is dimension permutation[d] of its operand.
        inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
        order = tuple(order[d] for d in inverse)
    return value, order


@element(ops.DotGeneral, ops.Convolution, repeats=True)
def sum_of_products(ctx: LoweringContext, op: Op, indices: Indices) -> Scalar:
    """Emits a contraction as a plain reduction."""
    loops = loops_of(op)
    kind = accumulation_type(op.results[0].type.element_type)
    at: dict[str, Index] = {}
    for names, index in zip(loops.result, indices, strict=True):
        for name in reversed(names[1:]):
            at[name], index = index % loops.loops[name].extent, index // loops.loops[name].extent
        at[names[0]] = index
    inner = [name for name in loops.loops if name not in at]
    variables = fresh([loops.loops[name].extent for name in inner])
    zero = zero_of(ctx, kind)

    def term(place: Indices) -> list[Scalar]:
        bound = {loops.loops[name]: index for name, index in (at | dict(zip(inner, place, strict=True))).items()}
        lhs_inside, lhs = _operand_place(ctx, op.operands[0], loops.lhs, bound)
        rhs_inside, rhs = _operand_place(ctx, op.operands[1], loops.rhs, bound)
        tests = [test for test in (lhs_inside, rhs_inside) if test is not None]
        inside = None if not tests else tests[0] if len(tests) == 1 else ctx.b.apply("and", *tests)

        def product() -> list[Scalar]:
            pairs = zip(("lhs", "rhs"), op.operands, (lhs, rhs), strict=True)
            factors = [rounded(ctx, op, side, converted(ctx, ctx.element(x, p), kind)) for side, x, p in pairs]
            return [times(ctx, *factors)]

        return guarded(ctx, inside, product, [zero])

    looped = [v for v in variables if v.extent != 1]
    if ctx.written_out or not looped:
        places = every_place([v.extent for v in variables])
        total = functools.reduce(lambda total, place: plus(ctx, total, *term(place)), places, zero)
        return converted(ctx, total, op.results[0].type.element_type)
    loop = sum_loop(ctx, kind, zero, *[v.extent for v in looped])
    with ctx.inside(loop, looped):
        loop.yield_(*flat(term(indices_of(variables))))
    return converted(ctx, grouped(loop.results, [kind])[0], op.results[0].type.element_type)


def sum_loop(ctx: LoweringContext, kind: Type, zero: Scalar, *extents: int | Register) -> LoopFrame:
    """Opens a loop that adds up the terms that its body yields, which are of an element type."""
    combiner = _sum_block(ctx, kind) if is_pair(kind) else "or" if is_boolean(kind) else "add"
    return ctx.b.reduction(*extents, inits=flat([zero]), combiner=combiner)


def zero_of(ctx: LoweringContext, kind: Type) -> Scalar:
    return ctx.literal(False if is_boolean(kind) else 0, kind)


def times(ctx: LoweringContext, x: Scalar, y: Scalar) -> Scalar:
    if isinstance(x, tuple) and isinstance(y, tuple):
        return complex_numbers.multiply(ctx.b, x, y)
    assert not isinstance(x, tuple)
    assert not isinstance(y, tuple)
    return ctx.b.multiply(x, y)


def plus(ctx: LoweringContext, x: Scalar, y: Scalar) -> Scalar:
    if isinstance(x, tuple) and isinstance(y, tuple):
        return complex_numbers.add(ctx.b, x, y)
    assert not isinstance(x, tuple)
    assert not isinstance(y, tuple)
    return ctx.b.add(x, y)


def _sum_block(ctx: LoweringContext, kind: Type):
    dtype = dtype_of(kind)
    with ctx.block(ctx.b.block(*[dtype] * 4)) as block:
        x, y = grouped(block.parameters, [kind, kind])
        block.yields = flat([plus(ctx, x, y)])
    return block


def _operand_place(
    ctx: LoweringContext, operand: Value, dimensions: Sequence[Subscript], at: dict[ContractionLoop, Index]
) -> tuple[Register | None, Indices]:
    """Returns whether there is an element (None: always), and where it is."""
    inside, place = None, []
    for dimension, extent in zip(dimensions, operand.type.shape, strict=True):
        position, dilation = dimension.position.replace(at.get), dimension.dilation  # type: ignore[arg-type]
        limit = (extent - 1) * dilation
        tests = []
        if position.range[0] < 0:
            tests.append(ctx.b.compare("GE", ctx.position(position), 0))
        if position.range[1] > limit:
            tests.append(ctx.b.compare("LE", ctx.position(position), limit))
        if dilation != 1:
            tests.append(ctx.b.compare("EQ", ctx.b.remainder(ctx.position(position), dilation), 0))
        for test in tests:
            inside = test if inside is None else ctx.b.apply("and", inside, test)
        place.append(position // dilation)
    return inside, tuple(place)
