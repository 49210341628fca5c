"""Each op has at most one lowering rule of each kind: a second one is refused when it is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trivium.compiler.lowering import rules
from trivium.ir import ops
from trivium.ir.errors import Error

TABLES = ("ELEMENT", "INDEXING", "KERNEL", "SPECIAL", "STEP", "SCALAR", "IN_PLACE", "REPEATING")


def special() -> Any:
    return next(iter(rules.SPECIAL))


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (lambda: rules.element(ops.Select), "stablehlo.select has two lowering rules"),
        (lambda: rules.indexing(ops.Select), "stablehlo.select has two lowering rules"),
        (lambda: rules.step(ops.While), "stablehlo.while has two lowering rules"),
        (lambda: rules.element(ops.Sort, repeats=True), "stablehlo.sort is declared twice as an op that reads"),
        (lambda: rules.kernel(ops.Scatter), "stablehlo.scatter is declared twice as an op that reads"),
        (lambda: rules.scalar(ops.If), "stablehlo.if is declared twice in one table"),
        (lambda: rules.special_kernel(special(), bool), "is declared twice in one table"),
    ],
)
def test_a_second_rule_is_refused(declare: Callable[[], Callable], expected: str) -> None:
    before = {name: len(getattr(rules, name)) for name in TABLES}
    with pytest.raises(Error, match=expected):
        declare()(lambda *about: None)
    assert {name: len(getattr(rules, name)) for name in TABLES} == before
