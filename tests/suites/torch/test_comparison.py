"""A seeded sample of PyTorch's op database, and what the comparison says of programs that differ."""

from __future__ import annotations

import contextlib
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's own tests need it")

from tests.suites.torch.comparison import (
    Case,
    Crashed,
    Refused,
    Wrong,
    _difference,
    _equal,
    _explained,
    _named,
    cases,
    check,
)
from tests.suites.torch.page import classify, page
from trivium.ir.errors import Unsupported, UnsupportedOpError

pytestmark = pytest.mark.torch

SAMPLE = [
    *random.Random(0).sample(cases("float32"), 8),
    *random.Random(1).sample(cases("backward"), 4),
    *random.Random(2).sample(cases("int64"), 3),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case.name}-{case.kind}")
def test_ops_are_equal_or_refused(case: Case) -> None:
    with contextlib.suppress(Refused):
        check(case, 1, {"fallback": False})


def test_results_that_differ_are_distinguished() -> None:
    x = torch.tensor([1.0, float("nan"), 3.0])
    assert _equal([x], [x.clone()])
    for other in (x.double(), x[:2], x + 1e-3, x.nan_to_num(0.0)):
        assert not _equal([other], [x])
        assert _difference([other], [x])


def test_errors_have_their_columns() -> None:
    refused = _explained(UnsupportedOpError("1 op has no rule:", [Unsupported("aten.foo.default")]))
    assert (type(refused), str(refused)) == (Refused, "aten.foo.default")
    assert isinstance(_explained(KeyError("x")), Crashed)
    module = "tests.suites.torch.comparison"
    columns = {kind: classify("failed", f"{module}.{kind.__name__}: why") for kind in (Refused, Wrong, Crashed)}
    assert columns == {Refused: "refused", Wrong: "wrong", Crashed: "failed"}


def test_the_page_lists_each_reason() -> None:
    outcomes = {
        "add": ["passed", "", 1.0],
        "foo": ["failed", "tests.suites.torch.comparison.Refused: aten.foo.default", 1.0],
        "bar": ["failed", "tests.suites.torch.comparison.Wrong: result 0 has 1, expected 2", 1.0],
        "dynamic": ["skipped", "aot_eager raises", 1.0],
    }
    written = page({"float32": {"collected": 4, "samples": 1, "outcomes": outcomes}})
    assert "| float32 | 4 | 3 | 1 | 1 | 1 | 0 | 33.3 % |" in written
    assert "- `aten.foo.default`: foo" in written
    assert "- `bar` (float32): `result 0 has 1, expected 2`" in written
    assert "seeded sample" not in written
    assert "called again" not in written


def test_the_page_reports_partial_runs() -> None:
    outcomes = {"add": ["passed", "", 1.0]}
    written = page({"bool": {"collected": 9, "samples": 1, "outcomes": outcomes, "again": ["add"]}})
    assert "| bool | 1 of 9 | 1 | 1 |" in written
    assert "A table of fewer ops than there are is a seeded sample of them, as far as its time went." in written
    assert "Not run: float32, backward, int64, bfloat16, complex64, float64, float16." in written
    assert "called again:\n\n- bool: add\n" in written


def test_indices_of_equal_elements_may_differ() -> None:
    x = torch.tensor([2.0, 1.0, 2.0])
    first, second, wrong, twice = (torch.tensor(at) for at in ([0, 2, 1], [2, 0, 1], [1, 0, 2], [0, 0, 1]))
    expected = _named(x, first, -1)
    assert _equal(_named(x, second, -1), expected)
    assert not _equal(_named(x, wrong, -1), expected)
    assert not _equal(_named(x, twice, -1), expected)
