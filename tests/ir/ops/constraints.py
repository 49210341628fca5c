"""Shared by the tests of constraints: values of any type, and the expectation of a labelled error. Violations are
recorded: the meta-test compares them with the specification, the reference page shows them, and they are also tried on
MLIR."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from types import TracebackType

import pytest

from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.errors import ConstraintKind, ExecutionError, VerificationError
from trivium.ir.types import F32, Type, tensor


@dataclass(frozen=True)
class Broken:
    """A constraint that failed: the op, and the error. `inferred` says whether the op already had results."""

    op: Op
    label: str
    kind: ConstraintKind
    message: str
    inferred: bool


_RECORDED: list[Broken] = []


def value(*shape: int | None, of: Type = F32) -> Value:
    """Returns a value of tensor type."""
    return Value(tensor(*shape, of=of))


@contextmanager
def breaks(label: str, kind: ConstraintKind = ConstraintKind.TYPE) -> Iterator[None]:
    """Expects the error with this label, whose message begins with the op and says what it has."""
    expected = ExecutionError if kind is ConstraintKind.RUN_TIME else VerificationError
    with pytest.raises(expected) as caught:
        yield
    error = caught.value
    assert (error.label, error.kind) == (label, kind), str(error)
    assert f": [{label}] " in error.message
    steps = list(_steps(caught.tb))
    op = next(op for _, op in reversed(steps) if op is not None)
    inferred = all(name != "_result_types" for name, _ in steps)
    _RECORDED.append(Broken(op, label, kind, error.message.partition("] ")[2], inferred))


def _steps(trace: TracebackType | None) -> Iterator[tuple[str, Op | None]]:
    """Yields the functions that were running when an error was raised, from outer to inner, each with the op that it
    was handling."""
    while trace is not None:
        name, values = trace.tb_frame.f_code.co_name, trace.tb_frame.f_locals
        op = values.get("self") if name == "__init__" else values.get("op")
        yield name, op if isinstance(op, Op) else None
        trace = trace.tb_next


@cache
def broken() -> tuple[Broken, ...]:
    """Returns all violations in the tests of constraints."""
    before = len(_RECORDED)
    for path in sorted(Path(__file__).parent.glob("test_*_constraints.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_"):
                for arguments in _calls(function):
                    with suppress(Exception, pytest.fail.Exception):  # a failing test is reported on its own
                        function(**arguments)
    found = tuple(_RECORDED[before:])
    del _RECORDED[before:]
    return found


def _calls(function: Callable[..., None]) -> Iterator[dict[str, object]]:
    """Yields the arguments with which pytest would call a test that has no fixtures."""
    tables = []
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            names = (
                [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            )
            rows = [getattr(row, "values", row) for row in mark.args[1]]
            tables.append([dict(zip(names, row if len(names) > 1 else [row], strict=True)) for row in rows])
    for rows in product(*tables):
        yield {name: given for row in rows for name, given in row.items()}
