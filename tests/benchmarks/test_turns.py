"""A row is checked before it is measured, and what is kept is compared peer by peer."""

import numpy as np
import pytest

from benchmarks.report import losses
from benchmarks.row import OURS, Row
from benchmarks.turns import Measured, measure


def row(other: float) -> Row:
    return Row("ones", lambda _: {OURS: lambda: np.ones(3), "peer": lambda: {"y": other * np.ones(3)}})


def test_contenders_take_turns() -> None:
    found = measure("tests", row(1.0), threads=1, seconds=0.0)
    assert found.best == "peer"
    assert found.ratio > 0


def test_a_contender_that_computes_something_else_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"peer differs by 0\.5"):
        measure("tests", row(2.0), threads=1, seconds=0.0)


def test_a_loss_is_one_against_the_peer_that_was_the_best() -> None:
    before = Measured("tests", "ones", 1, {OURS: 1.0, "a": 2.0, "b": 3.0}, {"a": 2.0, "b": 3.0})
    now = Measured("tests", "ones", 1, {OURS: 1.0, "a": 1.7, "b": 0.5}, {"a": 1.7, "b": 0.5})
    assert losses([now], [before]) == ["ones 1.70, was 2.00 against a"]
    assert losses([before], [now]) == []
