"""A rule's signature against the options of a node."""

from __future__ import annotations

import math

import pytest

from trivium.importers.binding import options_of, signature_of
from trivium.importers.context import Context
from trivium.ir.core import Block, Value
from trivium.ir.errors import UnsupportedOpError


def rule(ctx: Context, x: Value, y: Value | None = None, *, axis: int, mode: str = "a") -> Value:
    return x


def many(ctx: Context, *values: Value, axis: int) -> Value:
    return values[0]


CONTEXT: Context[str, Value] = Context(Block())
CONTEXT.op = "Node"


def test_signatures() -> None:
    assert (signature_of(rule).count, signature_of(rule).names) == (2, {"x", "y", "axis", "mode"})
    assert (signature_of(many).count, signature_of(many).names) == (math.inf, {"axis"})


def test_meaningless_entries_are_dropped() -> None:
    given = {"axis": 1, "device": "cpu", "accuracy": None}
    assert options_of(CONTEXT, rule, 1, given, {"device"}) == {"axis": 1}
    assert options_of(CONTEXT, many, 5, given, {"device"}) == {"axis": 1}


@pytest.mark.parametrize(
    ("operands", "given", "message"),
    [
        (1, {"axis": 1, "speed": 3}, "Node: argument speed has 3, expected none"),
        (1, {}, "Node: missing a required .*argument: 'axis'"),
        (0, {"axis": 1}, "Node: missing a required argument: 'x'"),
        (3, {"axis": 1}, "Node: too many positional arguments"),
        (2, {"axis": 1, "y": 2}, "Node: multiple values for argument 'y'"),
    ],
)
def test_what_does_not_fit_is_refused(operands: int, given: dict[str, int], message: str) -> None:
    with pytest.raises(UnsupportedOpError, match=message):
        options_of(CONTEXT, rule, operands, given)
