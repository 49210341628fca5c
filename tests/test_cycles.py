"""Import cycles inside a room: files that need one another are really one file. Imports inside functions count too;
those that only type checkers see do not. What two files both need belongs in a third one, which imports neither."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("ir", "importers", "compiler", "backends", "src/trivium")


def modules(room: str) -> dict[str, Path]:
    """Returns the files of a room by the names of their modules below `trivium`."""
    top = ROOT / "src/trivium" if room == "src/trivium" else ROOT
    return {
        path.relative_to(top).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in sorted((ROOT / room).rglob("*.py"))
    }


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yields the modules of the room that a file imports when it runs."""
    tree = ast.parse(path.read_text(), filename=str(path))
    skipped = {id(inner) for node in ast.walk(tree) if is_for_types(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if not name.startswith("trivium."):
                continue
            inside = name.removeprefix("trivium.")
            yield from [module for module in (inside, inside.rpartition(".")[0]) if module in known][:1]


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def cyclic_imports(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Returns the imports that are part of a cycle."""
    reached = {name: reachable(graph, name) for name in graph}
    return {(name, other) for name in graph for other in graph[name] if name in reached[other]}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_cycles(room: str) -> None:
    files = modules(room)
    graph = {name: set(imports(path, files)) - {name} for name, path in files.items()}
    assert cyclic_imports(graph) == set()


def test_cycles_are_found() -> None:
    assert cyclic_imports({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {("b", "c"), ("c", "b")}
