"""Rewrites of products: they compute the same, bit for bit, and are applied only where they do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten
from tests.compiler.passes.patterns.test_arithmetic import COMPLEX, FLOATS, INTEGERS, values_of
from trivium.compiler.passes.patterns.contraction import CONTRACTION
from trivium.ir import ops
from trivium.ir.types import C64, F32, F64, I1, I32, Type, tensor, type_of

WIDER = [
    (np.int8, I32), (np.uint8, I32), (ml_dtypes.bfloat16, F32), (ml_dtypes.float8_e4m3fn, F32), (np.float32, F64),
]  # fmt: skip


def dot(x: np.ndarray, y: np.ndarray, numbers: ops.DotDimensionNumbers, of: Type | None = None):
    """Returns the program of a product, whose result has elements of a type."""

    def body(b, x, y):
        kind = ops.DotGeneral.infer(x.type, y.type, numbers)
        result = kind if of is None else tensor(*kind.static_shape, of=of)
        return b.add(ops.DotGeneral(x, y, dot_dimension_numbers=numbers, result=result))

    return program_of([type_of(x), type_of(y)], body)


def outer(dtype: type, of: Type | None = None) -> list[str]:
    """Returns the ops of x y' for numbers that break identities."""
    numbers = values_of(np.dtype(dtype))
    x, y = numbers.reshape(-1, 1), numbers[::-1].reshape(1, -1)
    module = dot(x, y, ops.DotDimensionNumbers((), (), (1,), (0,)), of)
    return [name for name in names(rewritten(module, CONTRACTION, [x, y])) if name not in ("broadcast_in_dim",)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX])
def test_single_products_are_multiplied(dtype: type) -> None:
    assert "dot_general" not in outer(dtype)


@pytest.mark.parametrize(("dtype", "of"), WIDER)
def test_single_products_are_multiplied_in_the_type_of_the_result(dtype: type, of: Type) -> None:
    assert outer(dtype, of) == ["reshape", "convert", "reshape", "convert", "multiply", "add"]


@pytest.mark.parametrize(("dtype", "of"), [(np.bool_, None), (np.bool_, I1), (np.float32, C64), (np.float64, F32)])
def test_other_single_products_stay(dtype: type, of: Type | None) -> None:
    """Sums of booleans are disjunctions; complex products of real numbers make NaN of infinities."""
    assert outer(dtype, of) == ["dot_general"]


@pytest.mark.parametrize(
    ("left", "right", "numbers"),
    [
        ((3, 4), (5, 2), ((), (), (), ())),
        ((2, 3, 1), (2, 1, 4), ((0,), (0,), (2,), (1,))),
        ((3, 1, 2), (1, 2, 4), ((2,), (1,), (1,), (0,))),
        ((1, 3, 1), (1, 1), ((), (), (0, 2), (0, 1))),
        ((4, 2, 3), (3, 4), ((0, 2), (1, 0), (), ())),
        ((1,), (1,), ((), (), (0,), (0,))),
    ],
)
def test_any_dimensions_without_sums(left: tuple[int, ...], right: tuple[int, ...], numbers: tuple) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in (left, right))
    module = dot(x, y, ops.DotDimensionNumbers(*numbers))
    assert "dot_general" not in names(rewritten(module, CONTRACTION, [x, y]))


@pytest.mark.parametrize(
    ("left", "right", "dims", "numbers", "taken"),
    [
        ((2, 3, 4), (4, 5), (1, 2), ((0,), (0,), (2,), (1,)), True),
        ((2, 4, 3), (5, 4), (1, 2), ((0,), (0,), (1,), (2,)), True),
        ((2, 3, 2, 4), (4, 5), (2, 3), ((0, 1), (0, 1), (3,), (2,)), True),
        ((4, 2, 3), (4, 5), (0, 2), ((1,), (1,), (0,), (0,)), True),
        ((3, 2, 4), (4, 5), (1, 2), ((1,), (0,), (2,), (1,)), False),  # the rows would come before the batches
        ((3, 2, 4), (4, 5), (2, 3), ((1, 0), (0, 1), (2,), (2,)), False),
        ((2, 3, 4), (2, 4, 5), (0, 1, 2), ((0,), (0,), (2,), (1,)), False),  # each batch has its own
        ((2, 3, 4), (4, 1), (1, 2), ((0,), (0,), (2,), (1,)), False),  # columns are repeated
    ],
)
def test_batches_that_share_a_factor_are_rows(
    left: tuple[int, ...], right: tuple[int, ...], dims: tuple[int, ...], numbers: tuple, taken: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in (left, right))
    of = ops.DotDimensionNumbers(*numbers)
    shape = [0] * (len(dims) if len(right) == len(left) else len(right) + len(of.rhs_batching_dimensions))
    for pair in zip(of.lhs_batching_dimensions, of.rhs_batching_dimensions, strict=True):
        shape[pair[1]] = left[pair[0]]
    for d, extent in zip(dims, right, strict=True):
        shape[d] = 5 if extent == 1 else extent

    def body(b, x, y):
        repeated = b.add(ops.BroadcastInDim(y, broadcast_dimensions=dims, result=y.type.with_shape(shape)))
        return b.add(ops.DotGeneral(x, repeated, dot_dimension_numbers=of))

    found = names(rewritten(program_of([type_of(x), type_of(y)], body), CONTRACTION, [x, y]))
    assert ("broadcast_in_dim" not in found) == taken


def test_sums_stay_and_absorb_transposes() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(2, 3)

    def body(b, x, y):
        turned = b.add(ops.Transpose(y, (1, 0)))
        return b.add(ops.DotGeneral(x, turned, dot_dimension_numbers=ops.DotDimensionNumbers((), (), (1,), (0,))))

    module = program_of([type_of(x), type_of(y)], body)
    assert names(rewritten(module, CONTRACTION, [x, y])) == ["dot_general"]


@pytest.mark.parametrize(
    ("shape", "padding", "dilation", "padded"),
    [
        ((2, 0, 3), ((2, 2),), (1,), (2, 4, 3)),
        ((2, 0, 4, 3), ((3, 1), (1, 0)), (2, 3), (2, 4, 11, 3)),
        ((2, 4, 0, 3), ((-1, 2), (3, 0)), (1, 1), (2, 5, 3, 3)),
    ],
)
def test_convolutions_of_nothing_but_padding(
    shape: tuple[int, ...], padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], padded: tuple[int, ...]
) -> None:
    """They are products of zeros, which are NaN if a kernel has an infinite element."""
    space = tuple(range(1, len(shape) - 1))
    kernel = np.arange(2.0 ** len(space) * 15, dtype=np.float32).reshape(*(2 for _ in space), 3, 5)
    kernel.flat[3] = np.inf
    numbers = ops.ConvDimensionNumbers(
        0, len(shape) - 1, space, len(space), len(space) + 1, tuple(range(len(space))), 0, len(shape) - 1, space
    )

    def body(b, x, y):
        options = {"padding": padding, "lhs_dilation": dilation, "feature_group_count": 1, "batch_group_count": 1}
        return b.add(ops.Convolution(x, y, dimension_numbers=numbers, **options))

    image = np.zeros(shape, np.float32)
    after = rewritten(program_of([type_of(image), type_of(kernel)], body), CONTRACTION, [image, kernel])
    (op,) = (op for op in after.walk() if isinstance(op, ops.Convolution))
    assert op.lhs.type.shape == padded


def test_convolutions_without_features_stay() -> None:
    image, kernel = np.zeros((2, 4, 0), np.float32), np.zeros((2, 0, 5), np.float32)
    numbers = ops.ConvDimensionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    module = program_of(
        [type_of(image), type_of(kernel)],
        lambda b, x, y: b.add(
            ops.Convolution(x, y, dimension_numbers=numbers, feature_group_count=1, batch_group_count=1)
        ),
    )
    assert names(rewritten(module, CONTRACTION, [image, kernel])) == ["convolution"]
