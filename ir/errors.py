"""The one family of exceptions. Bad input raises one of these at every entry point; each says what is wrong, where in
the program, where in the user's source, and during which step. `assert` is reserved for our own bugs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

_SHOWN = 200
"""The maximum length of a value in a message."""


class Error(Exception):
    """The root of every error that Trivium raises on purpose.

    `inside` is a line of the program, `source` a place in the user's code, `during` the step that failed, `advice` a
    command that tells more.
    """

    advice: str | None = None

    def __init__(self, message: str, *, inside: object = None, source: object = None, during: str | None = None):
        super().__init__(message)
        self.message = message
        self.inside = inside
        self.source = source
        self.during = during

    def add(self, *, inside: object = None, source: object = None, during: str | None = None) -> Error:
        """Fills in what is not known yet; the innermost place wins. Returns the error itself, to be raised."""
        self.inside = self.inside if self.inside is not None else inside
        self.source = self.source if self.source is not None else source
        self.during = self.during or during
        return self

    def __str__(self) -> str:
        notes = (("in:   ", self.inside), ("from: ", self.source), ("while:", self.during), ("try:  ", self.advice))
        return "\n".join(
            [self.message, *(f"  {label} {note}" for label, note in notes if note is not None and str(note))]
        )


class ParseError(Error):
    """Text or bytes that are not a program. `line` and `column` count from 1; `file` is the name of the source."""

    def __init__(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, source_line: str = "", **context
    ):
        place = f"{file or '<text>'}:{line}:{column}: " if line else f"{file}: " if file else ""
        caret = f"\n  {source_line}\n  {' ' * (column - 1)}^" if source_line and column else ""
        super().__init__(f"{place}{message}{caret}", **context)
        self.file, self.line, self.column = file, line, column


class ConstraintKind(Enum):
    """What is needed to check a constraint."""

    TYPE = "type"  # the op alone: its attributes, regions and types
    SYMBOL = "symbol"  # the module, where the op names functions
    CONFIGURATION = "configuration"  # the numbers of replicas and partitions
    RUN_TIME = "run time"  # the values of operands


class VerificationError(Error):
    """A program that breaks a rule of the language. `label` is the specification's name of the constraint, if any."""

    def __init__(self, message: str, *, label: str = "", kind: ConstraintKind = ConstraintKind.TYPE, **context):
        super().__init__(message, **context)
        self.label, self.kind = label, kind


@dataclass(frozen=True)
class Unsupported:
    """One unsupported op: its name, how often it occurs, where it occurs first, and what exactly is missing."""

    name: str
    count: int = 1
    first: str = ""
    reason: str = ""

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        where = f", first at {self.first}" if self.first else ""
        return f"{self.name}{times}{where}{': ' + self.reason if self.reason else ''}"


class UnsupportedOpError(Error):
    """Ops, or arguments of ops, that have no rule. All of them are listed at once, in `ops`. `node` is the node of the
    outermost graph that contains the one that was being imported, where an importer tells."""

    node: object = None

    def __init__(self, message: str, ops: Sequence[Unsupported] = (), **context):
        super().__init__("\n".join([message, *(f"  - {op}" for op in ops)]), **context)
        self.ops = tuple(ops)


class CompileError(Error):
    """A valid program that could not be compiled."""


class ExecutionError(Error):
    """A compiled or interpreted program that could not run: wrong arguments, or a run-time constraint that fails.
    `label` is the specification's name of the constraint."""

    kind = ConstraintKind.RUN_TIME

    def __init__(self, message: str, *, label: str = "", **context):
        super().__init__(message, **context)
        self.label = label


def shortened(text: str) -> str:
    """Shortens a long value for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def fail(label: str, message: str, kind: ConstraintKind = ConstraintKind.TYPE) -> NoReturn:
    """Raises the error of a constraint. Called by `check` and `infer` of ops when a constraint fails, and by `evaluate`
    for constraints on the values of operands."""
    text = f"[{label}] {message}" if label else message
    if kind is ConstraintKind.RUN_TIME:
        raise ExecutionError(text, label=label)
    raise VerificationError(text, label=label, kind=kind)
