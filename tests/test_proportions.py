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
"""The most uses of `Any` in 1,000 lines of a room. A name that is defined with `Any` counts wherever it is used."""


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


def names_in(node: ast.AST) -> list[str]:
    return [name.id for name in ast.walk(node) if isinstance(name, ast.Name)]


def untyped_names(tree: ast.Module) -> set[str]:
    """`Any`, and the names that a file defines with it, such as `Json = dict[str, Any]`."""
    found = {"Any"}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and not found.isdisjoint(names_in(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def imported_untyped_names(tree: ast.Module) -> set[str]:
    """The names that a file imports from another file of the rooms, which defines them with `Any`."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("trivium."):
            path = f"{node.module.removeprefix('trivium.').replace('.', '/')}.py"
            for name in (path, f"src/trivium/{path}"):
                if (ROOT / name).exists():
                    found |= untyped_names(sources(name.partition("/")[0])[name]) & {x.name for x in node.names}
    return found


def uses_of_any(tree: ast.Module) -> int:
    names = untyped_names(tree) | imported_untyped_names(tree)
    return sum(name in names for name in names_in(tree))


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
    uses = sum(map(uses_of_any, sources(room).values()))
    lines = sum(map(length, sources(room)))
    assert uses <= ANY * lines / 1000, f"{uses} uses of Any in {lines} lines"


def test_long_functions_are_found() -> None:
    body = "\n".join("    pass" for _ in range(LONGEST_FUNCTION))
    assert list(long_functions(ast.parse(f"def f():\n{body}\ndef g(): pass"))) == ["f (61 lines)"]


def test_aliases_of_any_are_counted() -> None:
    text = "Array = Any\nArrays = list[Array]\nSize = int\ndef f(x: Array, n: Size) -> Arrays: ..."
    assert uses_of_any(ast.parse(text)) == 6
    driver = "from trivium.backends.gpu.driver import AnyDriver, Event\ndef f(x: AnyDriver, y: Event): ..."
    assert uses_of_any(ast.parse(driver)) == 1
