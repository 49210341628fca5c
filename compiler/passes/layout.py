"""Layouts: convolutions whose features come before the spatial dimensions are computed on tensors whose features come
last, so that vectors are filled with neighbouring features, and no window gathers.

A layout is a transpose: values stay dense and row-major, and the graph determines the order of the dimensions.
Transposes cost nothing inside a kernel, so only the order of the elements in buffers between kernels matters. Therefore
each such convolution is put between two transposes, and the second one sinks through the following ops to the next
convolution, where it meets that one's first transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from trivium.compiler.lowering.contraction import operand_order
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Block, Operation, Value
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.func import Module
from trivium.ir.types import F32, F64, TensorType

LEAST_POSITIONS = 512
"""The number of positions of the result from which it pays off to turn a convolution's kernel that is only known at run
time, and would be read along memory otherwise."""

SMALL_KERNEL, LEAST_FEATURES = 1 << 17, 16
"""The number of elements below which turning such a kernel takes little time, and the number of features of the result
from which they fill vectors better than few positions do."""

CHEAP = (ops.Constant, ops.Iota, ops.BroadcastInDim)
"""Ops whose results are computed where they are used, so that transposing them costs nothing."""

MOST_STEPS = 4
"""The most elementwise ops, one after the other, between such an op and where its result is used."""

WINDOWED = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
PADDED = ("edge_padding_low", "edge_padding_high", "interior_padding")
SLICED = ("start_indices", "limit_indices", "strides")

T = TypeVar("T")


@dataclass(frozen=True)
class ChannelsLast(Pass):
    """Afterwards, convolutions have their features last, with transposes only where other ops need the features
    elsewhere."""

    NAME: ClassVar[str] = "channels-last"

    def run(self, module: Module) -> bool:
        return any([_Sinking(block).run() for block in list(blocks(module))])


class _Sinking:
    """Processes a block in order. `twins` maps values whose features come first to values with the same elements and
    features last, whose transposes they are."""

    def __init__(self, block: Block):
        self._block = block
        self._twins: dict[Value, Value] = {}

    def run(self) -> bool:
        if not any((isinstance(op, ops.Convolution) and _gains(op)) or _resizes(op) for op in self._block):
            return False
        changed = False
        for op in list(self._block):
            if isinstance(op, ops.Convolution) and _gains(op) and not self._slides(op):
                self._convert(op)
                changed = True
            elif isinstance(op, ops.Transpose) and _moves_features(op):
                self._twins[op.result] = op.operand
            elif op is not self._block.last and any(operand in self._twins for operand in op.operands):
                changed |= self._sink(op)
        return changed

    def _slides(self, op: ops.Convolution) -> bool:
        """Whether a convolution is one of single channels, on an image that has them first in memory: its windows slide
        along lines, and it has nothing to gain."""
        image = op.lhs
        while isinstance(image.defining_op, ops.Pad):
            image = image.defining_op.operand
        return is_channelwise(op) and image not in self._twins

    def _convert(self, op: ops.Convolution) -> None:
        rewriter = Rewriter(op)
        last = (0, op.result.type.rank - 1, tuple(range(1, op.result.type.rank - 1)))
        numbers, kernel = op.dimension_numbers, op.dimension_numbers.kernel_dimensions
        attributes = op.attributes | {
            "dimension_numbers": ops.ConvDimensionNumbers(*last, kernel[1], kernel[0], kernel[2:], *last)
        }
        assert numbers.kernel_dimensions == attributes["dimension_numbers"].kernel_dimensions
        operands = [self._twin(rewriter, op.lhs), op.rhs]
        self._replace(rewriter, op, operands, attributes)

    def _sink(self, op: Operation) -> bool:
        """Computes the op on twins, if possible; returns whether it was."""
        attributes = _moved_attributes(op)
        rank = _rank(op)
        if attributes is None or rank is None:
            return False
        ranked = [operand for operand in op.operands if _rank_of(operand) == rank]
        missing = [operand for operand in ranked if operand not in self._twins and not _is_cheap(operand)]
        known = [operand for operand in ranked if operand in self._twins]
        others = [operand for operand in op.operands if operand not in ranked]
        indices = [op.start_indices] if isinstance(op, ops.Gather) else []
        if len(known) <= len(missing) or any(_rank_of(o) != 0 and o not in indices for o in others):
            return False
        rewriter = Rewriter(op)
        operands = [self._twin(rewriter, operand) if operand in ranked else operand for operand in op.operands]
        self._replace(rewriter, op, operands, attributes)
        return True

    def _twin(self, rewriter: Rewriter, value: Value) -> Value:
        """Returns the value with features last. What is padded is turned first, which takes whole squares."""
        op = value.defining_op
        if value not in self._twins and isinstance(op, ops.Pad) and len(value.uses) == 1:
            operands = self._twin(rewriter, op.operand), op.padding_value
            new = type(op).create(operands, [_moved_type(value.type)], _pad(op), [], op.extra, op.location, op.segments)
            return rewriter.add(new)
        if value not in self._twins:
            return rewriter.add(ops.Transpose(value, permutation=to_last(value.type.rank)))
        return self._twins[value]

    def _replace(
        self, rewriter: Rewriter, op: Operation, operands: Sequence[Value], attributes: dict[str, Any]
    ) -> None:
        """Replaces `op` by the op on twins, and its results by transposes of the new results."""
        moves = not isinstance(op, ops.Reduce) or (_keeps_features(op) and op.results[0].type.rank > 2)
        types = [_moved_type(kind) if moves else kind for kind in op.result_types]
        regions = [region.clone() for region in op.regions]
        new = type(op).create(operands, types, attributes, regions, op.extra, op.location, op.segments)  # type: ignore[attr-defined]
        rewriter.add(new)
        if not moves:
            rewriter.replace(*new.results)
            return
        first = to_first(new.results[0].type.rank)
        results = [rewriter.add(ops.Transpose(twin, permutation=first)) for twin in new.results]
        self._twins.update(zip(results, new.results, strict=True))
        rewriter.replace(*results)


def is_channelwise(op: ops.Convolution) -> bool:
    """Whether each channel of the image has kernels of its own, as in a depthwise convolution."""
    return op.feature_group_count > 1 == op.rhs.type.shape[op.dimension_numbers.kernel_input_feature_dimension]


def is_plain(op: ops.Convolution) -> bool:
    """Whether a convolution is one of f32 or f64, without groups, and without holes in its image."""
    without_groups = op.feature_group_count == 1 == op.batch_group_count
    return of_floats(op) and without_groups and all(step == 1 for step in op.lhs_dilation or ())


def of_floats(op: ops.Convolution) -> bool:
    """Whether a convolution has an image, a kernel and a result of f32, or of f64."""
    kind = op.result.type.element_type
    return kind in (F32, F64) and all(operand.type.element_type is kind for operand in op.operands)


def has_lines(op: ops.Convolution) -> bool:
    """Whether neighbours in the image's memory are neighbours along a spatial dimension, and not features."""
    return op.dimension_numbers.input_spatial_dimensions[-1:] == (op.lhs.type.rank - 1,)


def to_last(rank: int) -> tuple[int, ...]:
    """Returns the permutation that moves dimension 1, the features, to the end."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """Returns the permutation that moves the last dimension to place 1."""
    return (0, rank - 1, *range(1, rank - 1))


def _resizes(op: Operation) -> bool:
    """Whether lines or columns of images are chosen, as where they are interpolated."""
    return isinstance(op, ops.Gather) and op.operand.type.rank > 3 and _gather(op) is not None


def _moves_features(op: ops.Transpose) -> bool:
    """Whether an image whose features come last, such as an argument, is transposed."""
    return op.result.type.rank > 2 and tuple(op.permutation) == to_first(op.result.type.rank)


def _gains(op: ops.Convolution) -> bool:
    """Whether the features come first in a convolution, and it is faster if they come last."""
    rank = op.result.type.rank
    first = tuple(range(rank))
    numbers = op.dimension_numbers
    if rank < 3 or numbers.input_dimensions != first or numbers.output_dimensions != first:
        return False
    if op.batch_group_count != 1 or op.result.type.size == 0 or op.lhs.type.size == 0:
        return False
    shape = op.result.type.static_shape
    many = shape[0] * math.prod(shape[2:]) >= LEAST_POSITIONS
    is_small = op.rhs.type.size < SMALL_KERNEL and shape[1] >= LEAST_FEATURES
    return many or is_small or isinstance(op.rhs.defining_op, ops.Constant) or not _is_in_rows(op)


def _is_in_rows(op: ops.Convolution) -> bool:
    """Whether what each output feature takes of the kernel is contiguous in memory: if positions are in lanes, that is
    what is read. It is not in the kernel of a gradient of an image, which is a transpose."""
    _, order = operand_order(op.rhs)
    return order[0] == op.dimension_numbers.kernel_output_feature_dimension


def _rank_of(value: Value) -> int | None:
    return value.type.rank if isinstance(value.type, TensorType) else None


def _rank(op: Operation) -> int | None:
    """Returns the rank of the op's tensors, except scalars."""
    return _rank_of(op.operands[0]) if not isinstance(op, ops.Select | ops.Clamp) else _rank_of(op.operands[1])


def _is_cheap(value: Value, steps: int = MOST_STEPS) -> bool:
    """Whether a value is computed where it is used, from few elements."""
    op = value.defining_op
    if op is None or isinstance(op, CHEAP) or steps == 0:
        return isinstance(op, CHEAP)
    elementwise = isinstance(op, Op) and op.has_trait(ELEMENTWISE) and not op.regions
    return elementwise and all(_is_cheap(operand, steps - 1) for operand in op.operands)


def _moved_type(kind: Any) -> Any:
    return kind.with_shape(_moved(kind.static_shape))


def _moved(listed: Sequence[T]) -> tuple[T, ...]:
    """Returns a list with one entry per dimension in the order of the twin's dimensions."""
    return tuple(listed[d] for d in to_last(len(listed)))


def _moved_lists(op: Op, names: Sequence[str]) -> dict[str, Any]:
    moved = {name: _moved(op.attributes[name]) for name in names if op.attributes.get(name) is not None}
    return op.attributes | moved


def _moved_attributes(op: Operation) -> dict[str, Any] | None:
    """Returns the attributes of the op on twins; None for ops that transposes do not sink through."""
    if not isinstance(op, Op) or not op.results:
        return None
    if op.has_trait(ELEMENTWISE):
        return dict(op.attributes) if not op.regions else None
    rule = _RULES.get(type(op))
    return rule(op) if rule is not None else None


def _reduce_window(op: ops.ReduceWindow) -> dict[str, Any]:
    return _moved_lists(op, WINDOWED)


def _pad(op: ops.Pad) -> dict[str, Any]:
    return _moved_lists(op, PADDED)


def _slice(op: ops.Slice) -> dict[str, Any]:
    return _moved_lists(op, SLICED)


def _gather(op: ops.Gather) -> dict[str, Any] | None:
    """Handles those that choose slices along one dimension."""
    numbers, rank = op.dimension_numbers, op.operand.type.rank
    if len(numbers.start_index_map) != 1 or op.start_indices.type.rank != 1 or numbers.index_vector_dim != 1:
        return None
    (d,) = numbers.start_index_map
    if numbers != _choosing(rank, d):
        return None
    changed = {"dimension_numbers": _choosing(rank, to_last(rank).index(d)), "slice_sizes": _moved(op.slice_sizes)}
    return op.attributes | changed


def _choosing(rank: int, dimension: int) -> ops.GatherDimensionNumbers:
    """Returns the numbers of a gather of slices along a dimension, at a list of indices."""
    others = tuple(d for d in range(rank) if d != dimension)
    return ops.GatherDimensionNumbers(others, (dimension,), (), (), (dimension,), 1)


def _concatenate(op: ops.Concatenate) -> dict[str, Any]:
    return op.attributes | {"dimension": to_last(op.result.type.rank).index(op.dimension)}


def _reverse(op: ops.Reverse) -> dict[str, Any]:
    order = to_last(op.result.type.rank)
    return op.attributes | {"dimensions": tuple(order.index(d) for d in op.dimensions)}


def _keeps_features(op: ops.Reduce) -> bool:
    """Whether batch and features are at the same places in the results as in the operands."""
    return not {0, 1} & set(op.dimensions)


def _reduce(op: ops.Reduce) -> dict[str, Any] | None:
    """Handles reductions of the spatial dimensions alone, and those whose remaining dimensions are in the same order on
    the twin."""
    order = to_last(op.inputs[0].type.rank)
    kept = [d for d in order if d not in op.dimensions]
    if kept != sorted(kept) and not _keeps_features(op):
        return None
    return op.attributes | {"dimensions": tuple(sorted(order.index(d) for d in op.dimensions))}


_RULES: dict[type, Callable[[Any], dict[str, Any] | None]] = {
    ops.ReduceWindow: _reduce_window,
    ops.Pad: _pad,
    ops.Slice: _slice,
    ops.Gather: _gather,
    ops.Concatenate: _concatenate,
    ops.Reverse: _reverse,
    ops.Reduce: _reduce,
}
