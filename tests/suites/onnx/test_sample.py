"""A seeded sample of ONNX's backend tests: no result may be wrong, and what the page calls equal must be equal."""

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from tests.suites.onnx.cases import EQUAL, REFUSED, cases, judge, on_trivium
from tests.suites.onnx.page import page
from tests.suites.recorder import drawn

pytestmark = pytest.mark.onnx

PAGE = Path(__file__).parents[3] / "docs/onnx.md"


@pytest.fixture(scope="module")
def listed() -> set[str]:
    """The tests that the page lists as not equal."""
    return set(re.findall(r"^- `([^`]+)`", PAGE.read_text(), re.MULTILINE))


def test_backend(listed: set[str], subtests: pytest.Subtests) -> None:
    # Not parameters: ONNX computes all of its tests, with their results, before the first one has a name.
    sample = [case for name, case in cases().items() if drawn(name, 0.06, seed=11)]
    assert sample
    for case in sample:
        with subtests.test(case.name):
            verdict = judge(case, on_trivium)
            assert verdict.kind == (REFUSED if case.name in listed else EQUAL), verdict.reason


def test_pages_count_and_list() -> None:
    ours = {
        "node/a": ("equal", ""),
        "node/b": ("refused", "1 op has no rule: - B, first at B"),
        "simple/c": ("equal", ""),
    }
    theirs = {"node/a": ("crashed", ""), "node/b": ("equal", ""), "simple/c": ("equal", "")}
    text = page(ours, theirs)
    assert "| node | 2 | 1 | 1 | 0 | 0 | 50.0 % | 1 | 0 | 0.0 % |" in text
    assert "### refused: `1 op has no rule: - B` (1)\n\n- `node/b`, which ONNX Runtime passes" in text
