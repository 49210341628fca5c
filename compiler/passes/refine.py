"""Refinement: a program with dynamic shapes becomes one with static shapes, for arguments of specific shapes. It can
also be specialized to the values of the arguments from which extents are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trivium.compiler.dynamic import Shape, is_static
from trivium.compiler.parts import UnknownExtents
from trivium.compiler.passes.fold import FoldConstants, fold
from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.control import chosen_branch
from trivium.compiler.passes.patterns.dynamic import DYNAMIC, moving_box, size_operand
from trivium.compiler.passes.patterns.dynamic_calls import shape_operands, static_call
from trivium.compiler.passes.patterns.matching import constant
from trivium.compiler.passes.rewriting import replace
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, Rewriter, inline_block
from trivium.ir.core import Block, BlockArgument, Operation, Region, Value
from trivium.ir.custom_calls import CUSTOM_CALLS, evaluate_custom_call
from trivium.ir.declare import Op, Trait
from trivium.ir.errors import CompileError, ExecutionError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import FAILURES, Interpreter, failure
from trivium.ir.ops import (
    BitcastConvert,
    Case,
    Constant,
    Convert,
    Convolution,
    CustomCall,
    DynamicBroadcastInDim,
    DynamicConv,
    DynamicGather,
    DynamicIota,
    DynamicPad,
    DynamicReshape,
    Gather,
    GetDimensionSize,
    If,
    Pad,
    RealDynamicSlice,
    Reduce,
    Rng,
    RngBitGenerator,
    SetDimensionSize,
    Slice,
    Sort,
    UniformQuantize,
    While,
)
from trivium.ir.ops.common import bits_of
from trivium.ir.types import (
    I64,
    IndexType,
    TensorType,
    TupleType,
    Type,
    is_boolean,
    is_float,
    is_integer,
    shapes_compatible,
    stored,
)

SHAPE_ELEMENTS = 64
"""An operand with more elements than this is not considered a list of extents."""

_FOLD = FoldConstants(limit=SHAPE_ELEMENTS)

_SHAPE_OPERANDS: dict[type[Op], tuple[str, ...]] = {
    DynamicBroadcastInDim: ("output_dimensions",),
    DynamicConv: ("padding",),
    DynamicGather: ("slice_sizes",),
    DynamicIota: ("output_shape",),
    DynamicPad: ("edge_padding_low", "edge_padding_high", "interior_padding"),
    DynamicReshape: ("output_shape",),
    RealDynamicSlice: ("start_indices", "limit_indices", "strides"),
    Rng: ("shape",),
    SetDimensionSize: ("size",),
}


def shape_arguments(function: Function) -> tuple[int, ...]:
    """Returns the arguments from whose values, not only from whose shapes, extents are computed. Calls must have been
    inlined."""
    pending = [value for op in function.walk() for value in _shape_operands(op)]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.defining_op
        if isinstance(op, Sort | While):
            continue  # of which nothing is known before it runs
        if isinstance(value, BlockArgument) and value.block is not function.body.block:
            op = value.block.region.parent if value.block.region is not None else None
        if op is not None and not isinstance(op, GetDimensionSize):
            pending.extend(op.operands)
            pending.extend(result for region in op.regions for result in region.terminator.operands)
    return tuple(
        index for index, argument in enumerate(function.arguments) if argument in seen and _lists_extents(argument.type)
    )


@dataclass(frozen=True)
class RefineShapes(Pass):
    """Afterwards, every value of `main` has a static type: its arguments have the shapes `shapes`, and those in
    `values` are constants. An extent that follows from anything else raises `UnknownExtents`. Calls must have been
    inlined."""

    shapes: tuple[Shape | None, ...]
    values: Mapping[int, np.ndarray] = field(default_factory=dict)
    NAME: ClassVar[str] = "refine-shapes"

    def run(self, module: Module) -> bool:
        main = module.main
        for argument, shape in zip(main.arguments, self.shapes, strict=True):
            if shape is not None:
                argument.type = argument.type.with_shape(shape)
        builder = Builder(main.body.block, before=main.body.block.first)
        for index, value in self.values.items():
            argument = main.arguments[index]
            argument.replace_all_uses_with(builder.add(Constant(DenseElements(value, _constant_type(argument.type)))))
        _refine_block(main.body.block)
        main.refresh_type()
        return True


def _refine_block(block: Block) -> None:
    _refine_all(list(block))


def _refine_all(operations: Iterable[Operation]) -> None:
    for op in operations:
        if isinstance(op, Op) and op.block is not None:
            _refine(op)


def _refine(op: Op) -> None:
    """Makes the types of an op's results static, given that its operands' types are. An op on known numbers becomes a
    constant."""
    try:
        if (check := type(op).CHECK) is not None and not op.has_trait(Trait.TERMINATOR):
            check(op)  # again, because the verifier did not know these extents
        _refine_results(op)
        if op.block is not None:  # no rule has replaced it
            _expect_static(op)
            _simplify(op)
    except VerificationError as error:
        raise failure(op, ExecutionError(error.message, label=error.label)) from None
    except FAILURES as error:
        raise failure(op, error)  # noqa: B904, the cause is already set


def _refine_results(op: Op) -> None:
    rule, infer = _RULES.get(type(op)), type(op).INFER
    if rule is not None:
        rule(op)
    elif infer is not None and not all(is_static(value.type) for value in op.results):
        inferred = infer(op)
        _state(op, inferred if isinstance(inferred, list | tuple) else (inferred,))


def _expect_static(op: Op) -> None:
    for value in op.results:
        if not is_static(value.type):
            unknown = [size for size in _shape_operands(op) if constant(size) is None]
            raise UnknownExtents(op, unknown if all(_lists_extents(size.type) for size in unknown) else ())


def _simplify(op: Op) -> None:
    if _FOLD.folds(op):
        fold(op)
    elif isinstance(op, Reduce) and _is_known(op):
        numbers = {value: constant(value) for value in op.operands}
        results: Any = zip(Interpreter().step(op, numbers), op.result_types, strict=True)
        replace(op, tuple(Constant(DenseElements(array, kind)).result for array, kind in results))
    elif (found := DYNAMIC.match(op)) is not None:
        replace(op, found)


def _state(op: Operation, types: Sequence[Type]) -> None:
    """Fills in unknown extents of the results from `types`."""
    for value, kind in zip(op.results, types, strict=True):
        value.type = _merged(value.type, kind)


def _merged(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, TupleType) and isinstance(theirs, TupleType):
        return TupleType(tuple(map(_merged, mine.types, theirs.types)))
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return mine
    if not shapes_compatible(mine.shape, theirs.shape):
        raise CompileError(f"a result has type {mine}, and {theirs} for these arguments; expected one shape")
    extents = zip(mine.shape, theirs.shape, strict=True)
    return mine.with_shape([other if extent is None else extent for extent, other in extents])


def _state_extents(op: Operation, extents: np.ndarray | None) -> None:
    if extents is not None:
        (result,) = op.results
        _state(op, [result.type.with_shape(map(int, extents))])


# Ops whose types are inferred by special rules

_RULES: dict[type[Op], Callable[[Any], None]] = {}


def _rule(*kinds: type[Op]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        _RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


@_rule(Convert, UniformQuantize)
def _as_the_operand(op: Any) -> None:
    _state(op, op.operand_types)


@_rule(BitcastConvert)
def _same_bits(op: BitcastConvert) -> None:
    """The result has the dimensions of the operand, and one for the parts of a wide element."""
    operand, result = op.operand.type, op.result.type
    parts = bits_of(stored(operand).element_type) // bits_of(stored(result).element_type)
    _state(op, [result.with_shape((*operand.shape, parts)[: result.rank])])


@_rule(RngBitGenerator)
def _next_state(op: RngBitGenerator) -> None:
    _state(op, [op.initial_state.type, op.output.type])


@_rule(DynamicBroadcastInDim, DynamicIota, DynamicReshape, Rng)
def _of_shape(op: Any) -> None:
    """The shape of the result is an operand."""
    (name,) = _SHAPE_OPERANDS[type(op)]
    _state_extents(op, constant(getattr(op, name)))


@_rule(SetDimensionSize)
def _of_size(op: SetDimensionSize) -> None:
    size = constant(op.size)
    if size is not None:
        extents = list(op.operand.type.shape)
        extents[op.dimension] = int(size)
        _state_extents(op, np.array(extents))


@_rule(DynamicPad, RealDynamicSlice, DynamicGather, DynamicConv)
def _as_the_static_op(op: Any) -> None:
    """The result has the type that the op with attributes in place of these operands infers."""
    if isinstance(op, RealDynamicSlice) and (sizes := moving_box(op)) is not None:
        _state_extents(op, sizes)
        return
    lists = [constant(getattr(op, name)) for name in _SHAPE_OPERANDS[type(op)]]
    if any(array is None for array in lists):
        return
    given = [array.tolist() for array in lists if array is not None]
    match op:
        case DynamicPad():
            static: Op = Pad(op.operand, op.padding_value, *given)
        case RealDynamicSlice():
            static = Slice(op.operand, *given)
        case DynamicGather():
            static = Gather(op.operand, op.start_indices, op.dimension_numbers, *given)
        case _:
            attributes = {name: value for name, value in op.attributes.items() if value is not None}
            static = Convolution(op.lhs, op.rhs, padding=given[0], **attributes)
    _state(op, static.result_types)
    static.erase()


@_rule(While)
def _loop(op: While) -> None:
    """Carried values keep their types: in each region, and after the loop, they have those of the operands."""
    for region in op.regions:
        _refine_region(region, op.operand_types)
    carried = op.body.terminator.operand_types
    if carried != op.operand_types:
        has = f"the body returns ({', '.join(map(str, carried))})"
        expected = f"expected ({', '.join(map(str, op.operand_types))})"
        raise CompileError(f"while: {has}, {expected}: shapes change between iterations")
    _state(op, op.operand_types)


@_rule(If, Case)
def _branches(op: Any) -> None:
    """All branches return the same types, or it is known which of them runs."""
    chosen = chosen_branch(op)
    if chosen is not None:
        _inline(op, chosen)
        return
    trial = op.clone({})  # of which nothing remains if the program is divided before the op
    op.block.insert(trial, op)
    try:
        for region in trial.regions:
            _refine_region(region)
        if len({tuple(region.terminator.operand_types) for region in trial.regions}) > 1:
            raise UnknownExtents(op, ())
    except UnknownExtents as unknown:
        trial.erase()
        unknown.op, unknown.sizes = op, (op.operands[0],)
        raise
    _state(trial, trial.regions[0].terminator.operand_types)
    Rewriter(op).replace(*trial.results)


def _inline(op: Op, branch: Region) -> None:
    """Puts a branch in the place of a conditional."""
    block = op.block
    assert block is not None
    present, rewriter = set(block), Rewriter(op)
    rewriter.replace(*inline_block(branch.block, (), rewriter))
    _refine_all([x for x in block if x not in present])


def _refine_region(region: Region, types: Sequence[Type] = ()) -> None:
    for argument, kind in zip(region.arguments, types, strict=True):
        argument.type = kind
    _refine_block(region.block)


@_rule(CustomCall)
def _custom_call(op: CustomCall) -> None:
    """Checks assertions about shapes now, and replaces calls with known operands by the ops that they stand for."""
    known = [constant(value) for value in op.operands]
    definition = CUSTOM_CALLS.get(op.call_target_name)
    if op.call_target_name == "shape_assertion" and all(array is not None for array in known):
        evaluate_custom_call(op, known)
        op.erase()
    elif (static := static_call(op)) is not None:
        _state(op, static.result_types)
        replace(op, static.results)
    elif definition is not None and definition.infer is not None:
        _state(op, definition.infer(op))


# Questions about ops and types


def _shape_operands(op: Operation) -> list[Value]:
    if isinstance(op, CustomCall):
        return shape_operands(op)
    if isinstance(op, RealDynamicSlice) and (sizes := size_operand(op)) is not None:
        return [sizes]
    return [getattr(op, name) for name in _SHAPE_OPERANDS.get(type(op), ())]  # type: ignore[arg-type]


def _constant_type(kind: Any) -> Any:
    """Returns the type of a constant. Constants have no elements of type index, but ops that take these also take
    integers."""
    return kind.with_element(I64) if isinstance(kind.element_type, IndexType) else kind


def _is_known(op: Operation) -> bool:
    """Whether an op computes a few numbers from a few known ones."""
    given = all(constant(value) is not None and value.type.size <= SHAPE_ELEMENTS for value in op.operands)
    return given and op.is_pure and not any(region.free_values() for region in op.regions)


def _lists_extents(kind: Any) -> bool:
    """Whether a type can be that of extents, or of values that choose between extents."""
    if not isinstance(kind, TensorType) or not kind.is_static:
        return False
    element = kind.element_type
    if is_boolean(element):
        return kind.size == 1
    if is_float(element):
        return kind.rank <= 1 and kind.size <= SHAPE_ELEMENTS
    return (is_integer(element) or isinstance(element, IndexType)) and kind.size <= SHAPE_ELEMENTS
