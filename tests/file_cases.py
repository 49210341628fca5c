"""File tests: a file of small programs, separated by `// -----`, each followed, in `//=` lines, by the text that the
compiler produces for it. The first comment of a case is its title.

`TRIVIUM_REWRITE=1 pytest` writes the compiler's output into the files, so that it can be reviewed like any other
change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SEPARATOR = "\n// -----\n"
EXPECTED = "//="


@dataclass(frozen=True)
class FileCase:
    """Returns the case at `index` in the file at `path`."""

    path: Path
    index: int

    def sections(self) -> list[str]:
        """Returns the cases of the whole file, as it is now."""
        return self.path.read_text().split(SEPARATOR)

    def lines(self) -> list[str]:
        return self.sections()[self.index].rstrip("\n").splitlines()

    def program(self) -> str:
        """Returns the text of the program."""
        return "\n".join(line for line in self.lines() if not line.startswith("//"))

    def option(self, name: str, default: str = "") -> str:
        """Returns what follows `// NAME:` in the case or, if it is not there, in the first case of the file."""
        head = f"// {name}: "
        for line in (*self.lines(), *self.sections()[0].splitlines()):
            if line.startswith(head):
                return line.removeprefix(head)
        return default

    def title(self) -> str:
        comments = (line.removeprefix("// ") for line in self.lines() if line.startswith("// "))
        return next((comment for comment in comments if not comment.partition(":")[0].isupper()), "")

    def expect(self, made: str) -> None:
        """Requires that the `//=` lines are `made`; in rewriting mode, replaces them with it."""
        made_lines = [line.rstrip() for line in made.splitlines()]
        lines = self.lines()
        if not os.environ.get("TRIVIUM_REWRITE"):
            assert made_lines == [line.removeprefix(EXPECTED) for line in lines if line.startswith(EXPECTED)]
            return
        sections = self.sections()
        kept = [line for line in lines if not line.startswith(EXPECTED)]
        sections[self.index] = "\n".join([*kept, *(f"{EXPECTED}{line}".rstrip() for line in made_lines)])
        self.path.write_text(SEPARATOR.join(text.rstrip("\n") for text in sections) + "\n")


def file_cases(folder: Path) -> Iterator:
    """Returns the cases of all files in a folder, as parameters of a test."""
    for path in sorted(folder.glob("*.mlir")):
        for index in range(len(FileCase(path, 0).sections())):
            case = FileCase(path, index)
            yield pytest.param(case, id=f"{path.stem}-{index}-{case.title()[:40].replace(' ', '_')}")
