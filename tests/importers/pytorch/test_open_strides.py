"""Views by strides of tensors with dynamic sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import trivium

torch = pytest.importorskip("torch")
import sympy
from torch.export import Dim, export

from tests.importers.pytorch.test_bounds import Applied, drawn
from tests.importers.pytorch.test_open_sizes import compare
from trivium.importers.pytorch.open_strides import memory_order

pytestmark = pytest.mark.torch

VIEWS: dict[str, Callable[..., Any]] = {
    "transposed": lambda x: x.as_strided((x.shape[1], x.shape[0]), (1, x.shape[1])),
    "overlapping": lambda x: x.as_strided((x.shape[0], 3, x.shape[1] - 2), (x.shape[1], 1, 1)),
    "of columns": lambda x: x.t().contiguous().t().as_strided((2, x.shape[1]), (1, x.shape[0])),
    "of a part": lambda x: x[1:].as_strided((2, x.shape[1]), (x.shape[1], 1)),
    "before a part": lambda x: x[1:].as_strided((2, x.shape[1]), (x.shape[1], 1), x.shape[1] * 2),
    "diagonal written to": lambda x: torch.as_strided_scatter(x, x[:, 0] * 3, (x.shape[0],), (x.shape[1] + 1,)),
    "columns written to": lambda x: torch.as_strided_scatter(
        x.t().contiguous().t(), x[0, :2] * 3, (2,), (x.shape[0] + 1,), 1
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    compare(VIEWS[name], [(drawn(*shape),) for shape in ((5, 12), (4, 7), (6, 8))])


def exported(function: Callable[..., Any]) -> Any:
    return export(Applied(function), (drawn(5, 12),), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))


def test_a_view_beyond_the_tensor_is_an_error() -> None:
    run = trivium.compile(trivium.from_torch(exported(lambda x: x.as_strided((4, 5), (6, 1)))))
    assert run(drawn(6, 4).numpy())[0].shape == (4, 5)
    with pytest.raises(trivium.ExecutionError, match="has 23, expected at most 6"):
        run(drawn(2, 3).numpy())


def test_a_tensor_with_gaps_is_refused() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="expected a tensor without gaps in its memory"):
        trivium.from_torch(exported(lambda x: x[:, 1:].as_strided((2, 3), (1, 1))))


def test_the_order_of_dimensions_in_memory() -> None:
    one, rows, columns = sympy.Integer(1), *sympy.symbols("rows columns", integer=True)
    limited = sympy.Max(1, columns)
    assert memory_order([rows, columns], [limited, one]) == [0, 1]
    assert memory_order([rows, columns], [one, rows]) == [1, 0]
    assert memory_order([rows, one, columns], [columns, rows, one]) == [0, 1, 2]
    assert memory_order([rows, columns], [one, one]) is None
    assert memory_order([rows, columns], [columns * 2, one]) is None
