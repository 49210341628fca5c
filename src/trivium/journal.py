"""What was compiled for PyTorch, TensorFlow and JAX in this process, why it was compiled again, and what was left to
the framework: the adapters record it here, and `trivium.explain` reports it. Only the most recent entries are kept, and
only programs that still exist."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from weakref import ReferenceType, ref

from trivium.backends.pjrt import LoadedExecutable

MOST = 1000
"""The number of entries that are kept."""


@dataclass(frozen=True)
class Entry:
    """A sentence about a function or graph, which `owner` identifies. `compiles` says whether it was compiled, and
    `program` what to, if that is one program."""

    owner: Hashable
    text: str
    compiles: bool = False
    program: ReferenceType[LoadedExecutable] | None = None


_entries: deque[Entry] = deque(maxlen=MOST)


def compiled(owner: Hashable, name: str, given: str, program: LoadedExecutable | None, advice: str) -> None:
    """A function or graph was compiled for what it was `given`, to one program or in parts. `advice` says how to avoid
    that it is compiled for others."""
    if any(entry.owner == owner and entry.compiles for entry in tuple(_entries)):
        text = f"{name} was compiled again, for {given}. {advice}"
    else:
        text = f"{name} was compiled for {given}."
    _entries.append(Entry(owner, text, True, ref(program) if program is not None else None))


def left(owner: Hashable, text: str) -> None:
    """Something was left to the framework. What is said of several ops of one line is said once."""
    if not any(entry.owner == owner and entry.text == text for entry in tuple(_entries)):
        _entries.append(Entry(owner, text))


def explained() -> str:
    """Returns all sentences, in the order in which things happened; below those about a program, its explanation."""
    return "\n".join(_lines()) or "Nothing has been compiled for PyTorch, TensorFlow or JAX in this process."


def _lines() -> Iterator[str]:
    from trivium.explaining import explain_executable

    said: dict[Hashable, list[str]] = {}
    for entry in tuple(_entries):
        yield entry.text
        program = entry.program() if entry.program is not None else None
        if program is not None:
            summary, *lines = (f"  {line}" for line in explain_executable(program).split("\n"))
            yield summary
            yield from ["  Its kernels are as above."] if lines and said.get(entry.owner) == lines else lines
            said[entry.owner] = lines
