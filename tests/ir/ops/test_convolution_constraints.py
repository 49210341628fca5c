"""The constraints of convolutions, each broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.ops import ConvDimensionNumbers, Convolution, DynamicConv, Precision
from trivium.ir.types import BF16, I64, TOKEN, tensor

CONV = ConvDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


def conv(op: type[Op] = Convolution, lhs: Value | None = None, rhs: Value | None = None, **more: Any) -> None:
    """Four images of 9x8 in four channels, with eight kernels of 3x3; `more` are dimension numbers and attributes. If
    the padding is an operand, its value is unknown."""
    names = CONV.__dataclass_fields__
    numbers = replace(CONV, **{name: more.pop(name) for name in list(more) if name in names})
    attributes = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1, **more}
    if op is DynamicConv:
        attributes = {"padding": value(2, 2, of=I64), "result": tensor(None, None, None, None), **attributes}
    op(lhs or value(4, 9, 8, 4), rhs or value(3, 3, 4, 8), **attributes)


@pytest.mark.parametrize("op", [Convolution, DynamicConv])
@pytest.mark.parametrize(
    ("label", "changed"),
    [
        ("I1", {"lhs": Value(TOKEN)}),
        ("I2", {"rhs": Value(TOKEN)}),
        ("C1", {"rhs": value(3, 4, 8)}),
        ("C1", {"lhs": value(3), "rhs": value(3)}),
        ("C2", {"window_strides": [1]}),
        ("C3", {"window_strides": [1, 0]}),
        ("C5", {"lhs_dilation": [1, 1, 1]}),
        ("C6", {"lhs_dilation": [0, 1]}),
        ("C7", {"rhs_dilation": []}),
        ("C8", {"rhs_dilation": [1, -1]}),
        ("C9", {"window_reversal": [True]}),
        ("C10", {"batch_group_count": 3}),
        ("C11", {"feature_group_count": 3}),
        ("C12", {"input_spatial_dimensions": (1,)}),
        ("C13", {"input_spatial_dimensions": (1, 1)}),
        ("C13", {"input_batch_dimension": 4}),
        ("C14", {"feature_group_count": 2}),
        ("C15", {"rhs": value(3, 3, 4, 6), "batch_group_count": 4}),
        ("C16", {"rhs": value(3, 3, 1, 6), "feature_group_count": 4}),
        ("C17", {"kernel_spatial_dimensions": (0, 1, 2)}),
        ("C18", {"kernel_input_feature_dimension": 3}),
        ("C18", {"kernel_spatial_dimensions": (-1, 1)}),
        ("C19", {"output_spatial_dimensions": ()}),
        ("C20", {"output_feature_dimension": 0}),
        ("C20", {"output_feature_dimension": 4}),
        ("C21", {"feature_group_count": 0}),
        ("C22", {"batch_group_count": 0}),
        ("C23", {"feature_group_count": 2, "batch_group_count": 2}),
        ("C24", {"precision_config": [Precision.HIGH] * 3}),
        ("C25", {"result": tensor(4, 7, 7, 7)}),
        ("C26", {"result": tensor(4, 7, 6)}),
        ("C27", {"rhs": value(3, 3, 4, 8, of=BF16)}),
    ],
)
def test_convolutions(op: type[Op], label: str, changed: dict[str, Any]) -> None:
    with breaks(label):
        conv(op, **changed)


def test_convolution_c4() -> None:
    with breaks("C4"):
        conv(padding=[(0, 0)])
    with breaks("C4"):
        conv(padding=[(0, 0), (0,)])


def test_right_convolutions_are_accepted() -> None:
    conv(Convolution)
    conv(DynamicConv)
