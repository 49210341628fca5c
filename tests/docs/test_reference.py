"""The API reference has every public name of `trivium`, of its adapters and of `trivium.debug`."""

import importlib
import re
from pathlib import Path

import pytest

import trivium

PAGE = (Path(__file__).parents[2] / "docs/reference/python.md").read_text()
DIRECTIVE = re.compile(r"^\.\. auto(module|class|function):: (\S+)((?:\n   :\w[^\n]*)*)", re.MULTILINE)


def documented() -> set[str]:
    """Returns the names that the page documents, with their modules."""
    found = set()
    for kind, name, options in DIRECTIVE.findall(PAGE):
        members = re.search(r":members:(.*)", options)
        if kind == "module" and members:
            found |= {f"{name}.{member.strip()}" for member in members[1].split(",")}
        else:
            found.add(name)
    return found


def test_every_name_of_the_package() -> None:
    missing = {f"{home}.{name}" for home, names in trivium._HOMES.items() for name in names} - documented()
    assert missing == set()


@pytest.mark.parametrize(
    ("module", "framework"), [("debug", "numpy"), ("torch", "torch"), ("tensorflow", "tensorflow"), ("jax", "jax")]
)
def test_every_name_of_a_module(module: str, framework: str) -> None:
    pytest.importorskip(framework)
    found = importlib.import_module(f"trivium.{module}")
    shown = documented()
    homes = {name: f"{getattr(found, name).__module__}.{name}" for name in found.__all__}
    assert {name for name, home in homes.items() if not {home, f"trivium.{module}.{name}"} & shown} == set()
