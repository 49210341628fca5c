"""Every constraint has a negative test. The labels are read off the source of the ops: whatever string like C1 or I2
stands in a class, or in a function of the same file that the class names, demands a test `test_<op>_<label>` in a file
`test_*_constraints.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivium.ir import ops

LABEL = re.compile(r"[CIO]\d+")
FAMILIES = Path(ops.__file__).parent
TESTS = Path(__file__).parent


def labels_of(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> set[str]:
    """The labels in a piece of source, and in the functions that it names."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and LABEL.fullmatch(part.value):
            found.add(part.value)
        elif isinstance(part, ast.Name) and part.id in functions and part.id not in seen:
            found |= labels_of(functions[part.id], functions, seen | {part.id})
    return found


def name_of(node: ast.ClassDef) -> str:
    """`dynamic_slice`: the op's name, or the class's if it is a family."""
    for keyword in node.keywords:
        if keyword.arg == "name":
            return ast.literal_eval(keyword.value).partition(".")[2].replace("-", "_")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", node.name).lower()


def demanded(path: Path) -> Iterator[str]:
    """The names of the tests that the ops of one file call for."""
    tree = ast.parse(path.read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from (f"test_{name_of(node)}_{label.lower()}" for label in labels_of(node, functions))


def written() -> set[str]:
    trees = (ast.parse(path.read_text()) for path in TESTS.glob("test_*_constraints.py"))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", sorted(FAMILIES.glob("*.py")), ids=lambda path: path.stem)
def test_every_constraint_has_a_test(path: Path) -> None:
    assert sorted(set(demanded(path)) - written()) == []
