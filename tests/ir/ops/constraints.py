"""What the tests of constraints share: values of any type, and the expectation of a labelled error. What they break is
recorded: the meta-test asks for what the specification demands, the reference page shows it, and MLIR is asked too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from types import TracebackType

import pytest

from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import ConstraintKind, ExecutionError, VerificationError
from trivium.ir.types import F32, Type, tensor


@dataclass(frozen=True)
class Broken:
    """A constraint that failed: on which op, and with what error."""

    op: Op
    label: str
    kind: ConstraintKind
    message: str


_RECORDED: list[Broken] = []


def value(*shape: int | None, of: Type = F32) -> Value:
    """A value of tensor type."""
    return Value(tensor(*shape, of=of))


@contextmanager
def breaks(label: str, kind: ConstraintKind = ConstraintKind.TYPE) -> Iterator[None]:
    """Demands the error of this label, whose message begins with the op and says what there is."""
    expected = ExecutionError if kind is ConstraintKind.RUN_TIME else VerificationError
    with pytest.raises(expected) as caught:
        yield
    error = caught.value
    assert (error.label, error.kind) == (label, kind), str(error)
    assert f": [{label}] " in error.message
    _RECORDED.append(Broken(_failing_op(caught.tb), label, kind, error.message.partition("] ")[2]))


def _failing_op(trace: TracebackType | None) -> Op:
    """The op that was built, verified or run when the error came: that of the innermost such step."""
    found = None
    while trace is not None:
        names = trace.tb_frame.f_locals
        here = names.get("self") if trace.tb_frame.f_code.co_name == "__init__" else names.get("op")
        found = here if isinstance(here, Op) else found
        trace = trace.tb_next
    assert isinstance(found, Op)
    return found


@cache
def broken() -> tuple[Broken, ...]:
    """All that the tests of constraints break."""
    before = len(_RECORDED)
    for path in sorted(Path(__file__).parent.glob("test_*_constraints.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_"):
                for arguments in _calls(function):
                    function(**arguments)
    found = tuple(_RECORDED[before:])
    del _RECORDED[before:]
    return found


def _calls(function: Callable[..., None]) -> Iterator[dict[str, object]]:
    """The arguments with which pytest would call a test that has no fixtures."""
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


def operation_of(found: Operation) -> str:
    """The name of an op in the specification."""
    return found.NAME.partition(".")[2].replace("-", "_")
