"""Corresponding dimensions: an op on parts of its operands computes a part of its results, for every record."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.ops.records import Record, collect
from tests.ir.ops.test_records import error_allowed, widest
from trivium.compiler.passes.dimensions import along, on_parts, with_extent
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType, is_quantized, tensor


def op_of(module: Module) -> Operation:
    assert module.main.body.block.first is not None
    return module.main.body.block.first


def is_plain(kind: object) -> bool:
    return isinstance(kind, TensorType) and None not in kind.shape and not is_quantized(kind.element_type)


RECORDS = [
    record
    for record in collect()
    if all(is_plain(kind) for op in [op_of(record.module())] for kind in (*op.result_types, *op.operand_types))
]


def part_of(record: Record, dimension: int, begin: int, size: int) -> tuple[np.ndarray, ...] | None:
    """Returns the op of a record on parts of its arrays; None if it depends on all of them."""
    op = op_of(record.module())
    dimensions = along(op, dimension)
    if dimensions is None:
        return None
    arrays = [
        array if divided is None else np.take(array, range(begin, begin + size), axis=divided)
        for array, divided in zip(record.arrays, dimensions, strict=True)
    ]
    kinds = [
        kind if divided is None else kind.with_shape(with_extent(kind.static_shape, divided, size))
        for kind, divided in zip(op.operand_types, dimensions, strict=True)
    ]

    def body(builder: Builder, *given: Value):
        return builder.add(on_parts(op, {dimension: size}, given))  # type: ignore[arg-type]

    module = Module.build(functions=[Function.build("main", kinds, body)])
    module.verify()
    return evaluate(module, *arrays)


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in RECORDS])
def test_parts_of_the_operands_give_a_part_of_the_results(record: Record) -> None:
    module = record.module()
    shape = module.main.function_type.results[0].static_shape
    wholes = evaluate(module, *record.arrays)
    for dimension, extent in enumerate(shape):
        for begin, size in ((0, 1), (extent // 2, extent - extent // 2)):
            parts = part_of(record, dimension, begin, size) if extent else None
            for whole, part in zip(wholes, parts or (), strict=False):
                wanted = np.take(whole, range(begin, begin + size), axis=dimension)
                # Vectorized functions may round the last elements of an array differently.
                tolerance = error_allowed(module.main.function_type.results[0], max(record.ulps, 1))
                np.testing.assert_allclose(widest(part), widest(wanted), rtol=tolerance)


def built(op: type, *operands: TensorType, **attributes) -> Operation:
    """Returns an op on arguments of these types."""
    module = Module.build(
        functions=[Function.build("main", operands, lambda b, *given: b.add(op(*given, **attributes)))]
    )
    return op_of(module)


BATCHED = ops.DotDimensionNumbers((0,), (1,), (2,), (0,))
EXPECTED = [
    (built(ops.Add, tensor(2, 3), tensor(2, 3)), [(0, 0), (1, 1)]),
    (built(ops.Select, tensor(of=bool), tensor(2, 3), tensor(2, 3)), [(None, 0, 0), (None, 1, 1)]),
    (built(ops.Transpose, tensor(2, 3), permutation=(1, 0)), [(1,), (0,)]),
    (built(ops.Reshape, tensor(2, 3, 4), result=tensor(6, 1, 4)), [None, None, (2,)]),
    (built(ops.Reshape, tensor(6, 4), result=tensor(6, 2, 2)), [(0,), None, None]),
    (
        built(ops.BroadcastInDim, tensor(3, 1), broadcast_dimensions=(1, 0), result=tensor(5, 3, 2)),
        [(None,), (0,), (None,)],
    ),
    (
        built(ops.DotGeneral, tensor(2, 3, 4), tensor(4, 2, 5), dot_dimension_numbers=BATCHED),
        [(0, 1), (1, None), (None, 2)],
    ),
    (built(ops.Iota, iota_dimension=1, result=tensor(2, 3)), [(), None]),
    (
        built(ops.Slice, tensor(4, 3), start_indices=(1, 0), limit_indices=(3, 3), strides=(1, 1)),
        [None, (1,)],
    ),
    (built(ops.Reverse, tensor(2, 3), dimensions=(1,)), [(0,), None]),
    (
        built(
            ops.Pad, tensor(2, 3), tensor(), edge_padding_low=(0, 1), edge_padding_high=(0, -1), interior_padding=(0, 0)
        ),
        [(0, None), None],
    ),
]


@pytest.mark.parametrize(("op", "expected"), EXPECTED, ids=lambda value: getattr(value, "NAME", ""))
def test_which_dimensions_go_along(op: Operation, expected: list) -> None:
    assert [along(op, dimension) for dimension in range(len(expected))] == expected
