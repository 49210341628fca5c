"""Rewrites of sliding windows."""

from __future__ import annotations

from trivium.compiler.passes.patterns.matching import is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.core import Value
from trivium.ir.ops import Add, And, Maximum, Minimum, Multiply, Or, ReduceWindow

WINDOWS = PatternSet()
pattern = WINDOWS.pattern

IDEMPOTENT = Maximum, Minimum, And, Or
"""The operations in which a second time makes no difference."""


@pattern(ReduceWindow)
def window_without_padding(op):
    """A window of which there is one along a dimension, such as a global pool's, has nothing but elements of the
    operand: further initial values make no difference."""
    shape, results = op.inputs[0].type.shape, op.results[0].type.shape
    if not (op.inputs[0].type.is_static and op.results[0].type.is_static) or not _is_settled(op):
        return None
    sizes, padding = list(op.window_dimensions), list(op.padding or ((0, 0),) * len(shape))
    dilations = zip(op.base_dilations or (1,) * len(shape), op.window_dilations or (1,) * len(shape), strict=True)
    for d, (extent, count, dilated) in enumerate(zip(shape, results, dilations, strict=True)):
        low, _ = padding[d]
        begin, end = max(0, -low), min(extent, sizes[d] - low)
        if count == 1 and dilated == (1, 1) and begin < end and end - begin < sizes[d]:
            sizes[d], padding[d] = end - begin, (-begin, end - extent)
    if sizes == list(op.window_dimensions):
        return None
    attributes = {name: value for name, value in op.attributes.items() if name not in ("window_dimensions", "padding")}
    operands = op.inputs, op.init_values
    return ReduceWindow(*operands, window_dimensions=sizes, padding=padding, body=op.body.clone(), **attributes)


def _is_settled(op: ReduceWindow) -> bool:
    """Whether one initial value more or less makes no difference."""
    made = op.body.block.terminator.operands[0].defining_op
    if len(op.inputs) != 1 or made is None or set(made.operands) != set(op.body.block.arguments):
        return False
    (init,) = op.init_values
    return isinstance(made, IDEMPOTENT) or _is_neutral(made, init)


def _is_neutral(made: object, init: Value) -> bool:
    if isinstance(made, Add):
        return splat(init) is not None and splat(init) == 0
    return isinstance(made, Multiply) and is_splat_of(init, 1)
