"""ctypes' structures have the same layout as the compiler gives to the declarations that they are read from."""

import ctypes
import subprocess
from pathlib import Path

from tests.backends.native.test_abi import NATIVE, output
from trivium.backends.plugin.compiler import TYPES
from trivium.backends.table.abi import abi

HEADERS = ("<cstddef>", "<cstdio>", '"pjrt/abi/table.h"', '"pjrt/abi/extensions.h"')


def program() -> str:
    lines = []
    for name, kind in abi().structures.items():
        if name == "Table":
            continue
        lines.append(f'printf("{name} %zu\\n", sizeof(trivium::pjrt::{name}));')
        for field, *_ in kind._fields_:
            if field != "union":
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof(trivium::pjrt::{name}, {field}));')
    lines += [f'printf("{name} %d\\n", (int)trivium::pjrt::{name});' for name in abi().constants]
    lines += [f'printf("{name} %zu\\n", offsetof(trivium::pjrt::Api, {name}));' for name in abi().functions]
    body = "\n  ".join(lines)
    top = "".join(f"#include {file}\n" for file in HEADERS)
    return f"{top}int main() {{\n  {body}\n}}\n"


def layouts() -> list[str]:
    lines = []
    for name, kind in abi().structures.items():
        if name == "Table":
            continue
        lines.append(f"{name} {ctypes.sizeof(kind)}")
        lines += [f"{name}.{field} {getattr(kind, field).offset}" for field, *_ in kind._fields_ if field != "union"]
    lines += [f"{name} {number}" for name, number in abi().constants.items()]
    return lines + [f"{name} {abi().slot(name)}" for name in abi().functions]


def test_layouts(tmp_path: Path) -> None:
    expected = output(tmp_path / "layouts", program(), NATIVE)
    assert len(expected) > 900
    assert layouts() == expected


def test_element_types_are_all_there() -> None:
    numbers = [number for name, number in abi().constants.items() if name.startswith("Buffer_Type_")]
    assert [0, *TYPES.values()] == numbers


def test_the_declarations_are_in_the_wheel() -> None:
    """An installed package has them beside its Python files: they are excepted from what is left out."""
    root = NATIVE.parents[1]
    ignored = subprocess.run(["git", "check-ignore", "backends/native/pjrt/abi/table.h"], cwd=root, check=False)
    assert ignored.returncode == 1
    assert '"!**/pjrt/abi/*.h"' in (root / "pyproject.toml").read_text()
