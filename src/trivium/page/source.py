"""The user's source, as far as locations name it: for each line its number, and its text if the file exists here.
Programs may be untrusted, and may name any file: only Python and MLIR files are read, and only lines that are named are
shown, with a few around them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from trivium.ir.location import FileLocation
from trivium.page.data import Item, Stage

AROUND = 2
"""The number of lines before and after a named line that are shown."""

SHOWN = (".py", ".mlir")
"""The kinds of files that are shown."""

LARGEST_FILE = 1 << 21
LONGEST_LINE = 240


def source_stage(places: Iterable[FileLocation]) -> tuple[Stage, dict[tuple[str, int], int]]:
    """Returns the stage of the source, and the number of the item of each (file, line)."""
    stage = Stage("source", "Source")
    lines: dict[str, set[int]] = {}
    for place in places:
        if place.line > 0:
            lines.setdefault(place.file, set()).add(place.line)
    numbers: dict[tuple[str, int], int] = {}
    for file, named in lines.items():
        for line in sorted(named):
            numbers[file, line] = len(stage.items)
            stage.items.append(Item(f"{file.rpartition('/')[2]}:{line}", "line", path=_shown(file)))
        _add_file(stage, file, named, numbers)
    return stage, numbers


def _add_file(stage: Stage, file: str, named: set[int], numbers: dict[tuple[str, int], int]) -> None:
    text = _read(file)
    stage.add(_shown(file))
    last = 0
    near = {line + by for line in named for by in range(-AROUND, AROUND + 1)}
    shown = sorted(named | {line for line in near if 0 < line <= len(text)})
    margin = _margin(text[line - 1] for line in shown if line <= len(text))
    for line in shown:
        if last and line > last + 1:
            stage.add("      ⋮")
        content = (
            text[line - 1][margin:] if line <= len(text) else "(no text: the file is not here)" if not text else ""
        )
        stage.add(f"{line:5} {content[:LONGEST_LINE]}", numbers.get((file, line), -1))
        last = line
    stage.add("")


def _margin(lines: Iterable[str]) -> int:
    """Returns by how many spaces all lines are indented."""
    return min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)


def _shown(file: str) -> str:
    """Returns a path as people read it: from the working folder, if the file is in it, or from the folder of installed
    packages."""
    return file.removeprefix(f"{os.getcwd()}{os.sep}").rpartition(f"{os.sep}site-packages{os.sep}")[2]


def _read(file: str) -> list[str]:
    path = Path(file)
    try:
        if path.suffix not in SHOWN or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []
