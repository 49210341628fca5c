"""Older ops, which newer ones can express."""

from __future__ import annotations

from trivium.compiler.passes.decompositions.table import pattern
from trivium.ir.custom_targets import XLA_FUNCTIONS, XLA_TOP_K, largest_of
from trivium.ir.ops import (
    Broadcast,
    BroadcastInDim,
    CustomCall,
    Dot,
    DotDimensionNumbers,
    DotGeneral,
    Gather,
    GatherDimensionNumbers,
    TopK,
    TorchIndexSelect,
)


@pattern(Broadcast)
def broadcast(op):
    """broadcast(x, sizes) == broadcast_in_dim(x, the last dimensions)"""
    rank = op.result.type.rank
    return BroadcastInDim(op.operand, tuple(range(rank - op.operand.type.rank, rank)), result=op.result.type)


@pattern(Dot)
def dot(op):
    """dot(x, y) == dot_general(x, y), contracting the last dimension of x with the first of y"""
    numbers = DotDimensionNumbers((), (), (op.lhs.type.rank - 1,), (0,))
    return DotGeneral(op.lhs, op.rhs, numbers, precision_config=op.precision_config, result=op.result.type)


@pattern(CustomCall)
def top_k(op):
    """custom_call @mhlo.topk(x) == top_k(x), as artifacts of JAX before 0.10 have it"""
    if op.call_target_name != XLA_TOP_K or not op.inputs[0].type.is_static:
        return None
    return TopK(op.inputs[0], largest_of(op))


@pattern(CustomCall)
def function_of_xla(op):
    """custom_call @mhlo.erf(x) == erf(x), and so on, as artifacts of JAX before 0.10 have it"""
    cls = XLA_FUNCTIONS.get(op.call_target_name)
    return cls(*op.inputs, result=op.results[0].type) if cls is not None else None


@pattern(TorchIndexSelect)
def torch_index_select(op):
    """A gather of slices with extent 1 along `dim`; along the batch, slices and indices advance together."""
    operand, index, dim = op.operand.type, op.index.type, op.dim
    if not operand.is_static:
        return None
    batch = tuple(range(op.batch_dims))
    after = dim + index.rank - op.batch_dims
    numbers = GatherDimensionNumbers(
        offset_dims=(*range(op.batch_dims, dim), *range(after, op.result.type.rank)),
        collapsed_slice_dims=(dim,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
        start_index_map=(dim,),
        index_vector_dim=index.rank,
    )
    sizes = [1 if axis in (*batch, dim) else extent for axis, extent in enumerate(operand.shape)]
    return Gather(op.operand, op.index, numbers, sizes, result=op.result.type)
