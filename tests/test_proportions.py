"""Proportions of the code: short files and functions, a test for every file of some length, few untyped values. Import
cycles have their own test (`test_cycles`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("ir", "importers", "compiler", "backends", "src")

LONGEST_FILE = 480
LONGEST_FUNCTION = 60
UNTESTED = 80
"""The lines up to which a file needs no test file of its own."""

UNMIRRORED = {"compiler": 0, "backends": 0}
"""The most files in a room that may lack their test: lower these numbers, to 0."""

ANY = 12
"""The most uses of `Any` in 1,000 lines of a room."""


@cache
def sources(folder: str) -> dict[str, ast.Module]:
    """The Python files of a folder, parsed."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in paths}


def length(path: str) -> int:
    return len((ROOT / path).read_text().splitlines())


def long_files(folder: str) -> set[str]:
    return {path for path in sources(folder) if length(path) > LONGEST_FILE}


def long_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{node.name} ({lines} lines)"


def mirror(path: str) -> Path:
    """Where the test of a file is: `tests/<room>/<path>/test_<name>.py`."""
    return ROOT / "tests" / Path(path).parent / f"test_{Path(path).name}"


@pytest.mark.parametrize("folder", [*ROOMS, "tests", "docs", "benchmarks"])
def test_no_file_is_too_long(folder: str) -> None:
    assert long_files(folder) == set()


@pytest.mark.parametrize("folder", [*ROOMS, "tests", "docs", "benchmarks"])
def test_no_function_is_too_long(folder: str) -> None:
    found = {path: list(long_functions(tree)) for path, tree in sources(folder).items()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize("room", UNMIRRORED)
def test_files_have_tests_where_they_mirror_them(room: str) -> None:
    files = [path for path in sources(room) if Path(path).name != "__init__.py" and length(path) > UNTESTED]
    missing = [path for path in files if not mirror(path).exists()]
    assert len(missing) <= UNMIRRORED[room], "these have no test file: " + ", ".join(missing)


@pytest.mark.parametrize("room", ROOMS)
def test_values_have_types(room: str) -> None:
    uses = sum(
        isinstance(node, ast.Name) and node.id == "Any" for tree in sources(room).values() for node in ast.walk(tree)
    )
    lines = sum(map(length, sources(room)))
    assert uses <= ANY * lines / 1000, f"{uses} uses of Any in {lines} lines"


def test_long_functions_are_found() -> None:
    body = "\n".join("    pass" for _ in range(LONGEST_FUNCTION))
    assert list(long_functions(ast.parse(f"def f():\n{body}\ndef g(): pass"))) == ["f (61 lines)"]
