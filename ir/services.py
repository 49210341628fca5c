"""The functions that types, ops and modules need from parts of the language that are built on them: text, artifacts and
the verifier. Each of those parts registers its function here when it is imported, and `trivium.ir` imports them all
before anything else. This way no module imports one that is built on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trivium.ir.attributes import Attribute
    from trivium.ir.core import Operation
    from trivium.ir.func import Module


class TextPieces(Protocol):
    """Yields the text of an op and everything inside it, in pieces."""

    def __call__(self, module: Operation, *, locations: bool = ..., elide: bool = ...) -> Iterator[str]: ...


class Services:
    """One function per task, named after the task."""

    attribute_text: Callable[[Attribute], str]
    serialize: Callable[[Module, str | None], bytes]
    text_pieces: TextPieces
    verify: Callable[[Operation], None]
    page: Callable[[Module, str | Path | None], str] | None = None
    """Returns a module as an element of a notebook, or writes its page to a file: only where the front door has been
    opened, since pages are built on everything else."""


SERVICES = Services()
