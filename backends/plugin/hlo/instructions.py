"""The ops of StableHLO and CHLO as instructions of HLO: for each op the name of its instruction, and the fields of
`HloInstructionProto` with its attributes. Ops without a row have no instruction with their meaning, or need more than
one (`special.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.backends.plugin.hlo.computation import DIMENSIONS, GLOBAL_IDS, REPLICA_GROUPS, TUPLE_INDEX
from trivium.backends.plugin.hlo.wire import message, messages, number, numbers, single, text
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.declare import Op
from trivium.ir.ops.groups import rows_of
from trivium.ir.ops.windows import Window, windows_of
from trivium.ir.text.attributes import attribute_text
from trivium.ir.types import is_complex

Fields = Callable[[Any], bytes]


@dataclass(frozen=True)
class Row:
    """An instruction: its opcode, the bytes of its fields, and which of the op's operands it has (None: all)."""

    opcode: str
    fields: Fields = lambda op: b""
    operands: tuple[int, ...] | None = None


_LIKE_ITS_NAME = (
    ops.Abs, ops.Add, ops.And, ops.Atan2, ops.BitcastConvert, ops.Cbrt, ops.Ceil, ops.Clamp, ops.Complex,
    ops.Convert, ops.CountLeadingZeros, ops.Divide, ops.Exponential, ops.ExponentialMinusOne, ops.Floor, ops.Imag,
    ops.IsFinite, ops.Log, ops.LogPlusOne, ops.Logistic, ops.Maximum, ops.Minimum, ops.Multiply, ops.Negate,
    ops.Not, ops.Or, ops.Popcnt, ops.Power, ops.Real, ops.Remainder, ops.Reshape, ops.RoundNearestAfz,
    ops.RoundNearestEven, ops.Rsqrt, ops.Select, ops.ShiftLeft, ops.ShiftRightArithmetic, ops.ShiftRightLogical,
    ops.Sign, ops.Sine, ops.Cosine, ops.Sqrt, ops.Subtract, ops.Tan, ops.Tanh, ops.Xor, ops.Map, ops.AfterAll,
    ops.ReplicaId, ops.PartitionId, ops.Tuple,
)  # fmt: skip
"""The ops whose instructions have their names, and no attributes."""


def collective(op: Any) -> bytes:
    """Returns the devices that exchange values. Their channel is numbered by the program's writer."""
    rows = ([member for member in row if member >= 0] for row in rows_of(op))
    ids = getattr(op, "use_global_device_ids", None) is not None
    return messages(REPLICA_GROUPS, (numbers(1, row) for row in rows)) + number(GLOBAL_IDS, ids)


def window(windows: Iterable[Window], reversal: Sequence[bool] | None = None) -> bytes:
    """Returns a window, a message for each dimension."""
    dimensions = []
    for index, each in enumerate(windows):
        sizes = number(1, each.size) + number(2, each.stride) + number(3, each.low) + number(4, each.high)
        spread = number(5, each.dilation) + number(6, each.base_dilation)
        dimensions.append(sizes + spread + number(7, bool(reversal and reversal[index])))
    return message(15, messages(1, dimensions))


def _compare(op: ops.Compare) -> bytes:
    # The other orders follow from the type of the operands.
    order = "TOTALORDER" if op.compare_type is not None and op.compare_type.value == "TOTALORDER" else ""
    return text(63, op.comparison_direction.value) + text(72, order)


def _pad(op: ops.Pad) -> bytes:
    rows = zip(op.edge_padding_low, op.edge_padding_high, op.interior_padding, strict=True)
    return message(21, messages(1, (number(1, low) + number(2, high) + number(3, inner) for low, high, inner in rows)))


def _slice(op: ops.Slice) -> bytes:
    rows = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    return messages(17, (number(1, start) + number(2, limit) + number(3, stride) for start, limit, stride in rows))


def _precision(op: ops.DotGeneral | ops.Convolution) -> bytes:
    levels = {"DEFAULT": 0, "HIGH": 1, "HIGHEST": 2}
    algorithm = getattr(op, "algorithm", None)
    chosen = number(2, _algorithm(algorithm) or 0) if algorithm is not None else b""
    return message(51, numbers(1, (levels[each.value] for each in op.precision_config or ())) + chosen)


_ALGORITHMS = {
    ("f16", "f16", 1): 3, ("f16", "f32", 1): 4, ("bf16", "bf16", 1): 5, ("bf16", "f32", 1): 6, ("bf16", "f32", 3): 7,
    ("bf16", "f32", 6): 8, ("bf16", "f32", 9): 13, ("tf32", "f32", 1): 9, ("tf32", "f32", 3): 10, ("f32", "f32", 1): 11,
    ("f64", "f64", 1): 12,
}  # fmt: skip
"""XLA's numbers of algorithms, by the types of factors and sums, and the number of products."""


def _algorithm(algorithm: ops.DotAlgorithm) -> int | None:
    lhs, rhs, total = map(
        str, (algorithm.lhs_precision_type, algorithm.rhs_precision_type, algorithm.accumulation_type)
    )
    count, is_imprecise = algorithm.num_primitive_operations, algorithm.allow_imprecise_accumulation
    if lhs.startswith("f8") and rhs.startswith("f8") and (total, count) == ("f32", 1):
        return 2 if is_imprecise else 1
    return None if lhs != rhs or is_imprecise else _ALGORITHMS.get((lhs, total, count))


def _dot(op: ops.DotGeneral) -> bytes:
    n = op.dot_dimension_numbers
    contracting = numbers(1, n.lhs_contracting_dimensions) + numbers(2, n.rhs_contracting_dimensions)
    batching = numbers(3, n.lhs_batching_dimensions) + numbers(4, n.rhs_batching_dimensions)
    return message(30, contracting + batching) + _precision(op)


def _convolution(op: ops.Convolution) -> bytes:
    n = op.dimension_numbers
    sizes = [op.rhs.type.shape[d] for d in n.kernel_spatial_dimensions]
    windows = windows_of(sizes, op.window_strides, op.padding, op.lhs_dilation, op.rhs_dilation)
    places = (
        number(7, n.input_batch_dimension)
        + number(8, n.input_feature_dimension)
        + numbers(11, n.input_spatial_dimensions)
        + number(3, n.kernel_input_feature_dimension)
        + number(4, n.kernel_output_feature_dimension)
        + numbers(6, n.kernel_spatial_dimensions)
        + number(9, n.output_batch_dimension)
        + number(10, n.output_feature_dimension)
        + numbers(12, n.output_spatial_dimensions)
    )
    groups = number(50, op.feature_group_count) + number(58, op.batch_group_count)
    return window(windows, op.window_reversal) + message(16, places) + groups + _precision(op)


def _reduce_window(op: ops.ReduceWindow) -> bytes:
    return window(
        windows_of(op.window_dimensions, op.window_strides, op.padding, op.base_dilations, op.window_dilations)
    )


def _select_and_scatter(op: ops.SelectAndScatter) -> bytes:
    sizes = op.window_dimensions or (1,) * op.operand.type.rank
    return window(windows_of(sizes, op.window_strides, op.padding))


def _sort(op: ops.Sort) -> bytes:
    return numbers(DIMENSIONS, [op.dimension % op.inputs[0].type.rank]) + number(60, op.is_stable)


def _gather(op: ops.Gather) -> bytes:
    n = op.dimension_numbers
    windows = numbers(1, n.offset_dims) + numbers(2, n.collapsed_slice_dims) + numbers(3, n.start_index_map)
    batching = numbers(5, n.operand_batching_dims) + numbers(6, n.start_indices_batching_dims)
    places = message(33, windows + number(4, n.index_vector_dim) + batching)
    return places + numbers(34, op.slice_sizes) + number(67, op.indices_are_sorted)


def _scatter(op: ops.Scatter) -> bytes:
    n = op.scatter_dimension_numbers
    windows = numbers(1, n.update_window_dims) + numbers(2, n.inserted_window_dims)
    windows += numbers(3, n.scatter_dims_to_operand_dims)
    batching = numbers(5, n.input_batching_dims) + numbers(6, n.scatter_indices_batching_dims)
    places = message(48, windows + number(4, n.index_vector_dim) + batching)
    return places + number(67, op.indices_are_sorted) + number(69, op.unique_indices)


def _fft(op: ops.Fft) -> bytes:
    kinds = {"FFT": 0, "IFFT": 1, "RFFT": 2, "IRFFT": 3}
    return number(31, kinds[op.fft_type.value]) + numbers(32, op.fft_length)


def _triangular_solve(op: ops.TriangularSolve) -> bytes:
    transposes = {"TRANSPOSE_INVALID": 0, "NO_TRANSPOSE": 1, "TRANSPOSE": 2, "ADJOINT": 3}
    flags = number(1, op.left_side) + number(2, op.lower) + number(3, op.unit_diagonal)
    return message(59, flags + number(4, transposes[op.transpose_a.value]))


def _rng_bit_generator(op: ops.RngBitGenerator) -> bytes:
    return number(70, {"DEFAULT": 0, "THREE_FRY": 1, "PHILOX": 2}[op.rng_algorithm.value])


def _rng(op: ops.Rng) -> bytes:
    return number(23, {"UNIFORM": 1, "NORMAL": 2}[op.rng_distribution.value])


def _batch_norm(op: Any) -> bytes:
    return single(24, float(op.epsilon)) + number(25, op.feature_index)


def _permute(op: ops.CollectivePermute) -> bytes:
    return messages(52, (number(1, source) + number(2, target) for source, target in op.source_target_pairs))


_REDUCTIONS = (ops.Reduce, ops.ReduceWindow, ops.SelectAndScatter, ops.Scatter, ops.AllReduce, ops.ReduceScatter)

ROWS: dict[type[Operation], Row] = {
    **{kind: Row(kind.short_name().replace("_", "-")) for kind in _LIKE_ITS_NAME},
    ops.Erf: Row("erf"),
    ops.ChloTan: Row("tan"),
    ops.Square: Row("multiply", operands=(0, 0)),
    ops.CreateToken: Row("after-all"),
    ops.Compare: Row("compare", _compare),
    ops.Iota: Row("iota", lambda op: numbers(DIMENSIONS, [op.iota_dimension])),
    ops.Transpose: Row("transpose", lambda op: numbers(DIMENSIONS, op.permutation)),
    ops.Reverse: Row("reverse", lambda op: numbers(DIMENSIONS, op.dimensions)),
    ops.Concatenate: Row("concatenate", lambda op: numbers(DIMENSIONS, [op.dimension])),
    ops.GetTupleElement: Row("get-tuple-element", lambda op: number(TUPLE_INDEX, op.index)),
    ops.GetDimensionSize: Row("get-dimension-size", lambda op: numbers(DIMENSIONS, [op.dimension])),
    ops.SetDimensionSize: Row("set-dimension-size", lambda op: numbers(DIMENSIONS, [op.dimension])),
    ops.ReducePrecision: Row(
        "reduce-precision", lambda op: number(18, op.exponent_bits) + number(19, op.mantissa_bits)
    ),
    ops.Pad: Row("pad", _pad),
    ops.Slice: Row("slice", _slice),
    ops.DynamicSlice: Row("dynamic-slice", lambda op: numbers(20, op.slice_sizes)),
    ops.DynamicUpdateSlice: Row("dynamic-update-slice"),
    ops.Gather: Row("gather", _gather),
    ops.Scatter: Row("scatter", _scatter),
    ops.DotGeneral: Row("dot", _dot),
    ops.Convolution: Row("convolution", _convolution),
    ops.Reduce: Row("reduce", lambda op: numbers(DIMENSIONS, op.dimensions)),
    ops.ReduceWindow: Row("reduce-window", _reduce_window),
    ops.SelectAndScatter: Row("select-and-scatter", _select_and_scatter),
    ops.Sort: Row("sort", _sort),
    ops.Fft: Row("fft", _fft),
    ops.Cholesky: Row("cholesky", lambda op: message(62, number(1, op.lower))),
    ops.TriangularSolve: Row("triangular-solve", _triangular_solve),
    ops.RngBitGenerator: Row("rng-bit-generator", _rng_bit_generator),
    ops.Rng: Row("rng", _rng, operands=(0, 1)),
    ops.BatchNormTraining: Row("batch-norm-training", _batch_norm),
    ops.BatchNormInference: Row("batch-norm-inference", _batch_norm),
    ops.BatchNormGrad: Row("batch-norm-grad", _batch_norm),
    ops.TopK: Row("topk", lambda op: number(81, op.k) + number(85, True)),
    ops.AllGather: Row("all-gather", lambda op: numbers(DIMENSIONS, [op.all_gather_dim]) + collective(op)),
    ops.AllReduce: Row("all-reduce", collective),
    ops.ReduceScatter: Row("reduce-scatter", lambda op: numbers(DIMENSIONS, [op.scatter_dimension]) + collective(op)),
    ops.AllToAll: Row("all-to-all", lambda op: numbers(DIMENSIONS, [op.split_dimension]) + collective(op)),
    ops.CollectivePermute: Row("collective-permute", _permute),
    ops.CollectiveBroadcast: Row("collective-broadcast", collective),
}


def row_of(op: Operation) -> Row | None:
    """Returns the instruction that computes the same as an op, if there is one."""
    return None if _is_unknown(op) else ROWS.get(type(op))


def _is_unknown(op: Operation) -> bool:
    """Whether HLO has the op, but not with these attributes or types."""
    match op:
        case ops.Cbrt() | ops.Square():  # the square of an infinite complex number is not its product
            return is_complex(op.operand.type.element_type)
        case ops.CollectiveBroadcast():
            return op.has_dynamic_root is not None
        case ops.DotGeneral():
            return op.algorithm is not None and _algorithm(op.algorithm) is None
    return _promotes(op)


def _promotes(op: Operation) -> bool:
    """Whether a reduction computes with numbers of another type than its operands: HLO's may not."""
    if not isinstance(op, _REDUCTIONS):
        return False
    given = {value.type.element_type for value in op.operands}
    return any(argument.type.element_type not in given for region in op.regions for argument in region.arguments)


def attributes_of(op: Op) -> str:
    """Returns an op's attributes as text, for instructions that have no fields for them."""
    named = {field.name: op.attributes.get(field.name) for field in op.ATTRIBUTES}
    return ", ".join(f"{name} = {attribute_text(value)}" for name, value in named.items() if value is not None)
