"""Which rooms and libraries each room of the project may import.

The table is the architecture. Imports are read from the source with `ast`, including those inside functions, so that a
lazy import cannot circumvent the table.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Folder, longest match first: (rooms of ours it may import besides itself, libraries it may import).
ROOMS: dict[str, tuple[set[str], set[str]]] = {
    "ir": (set(), {"numpy", "ml_dtypes"}),
    # SciPy has the values of the special functions that series are fitted to.
    "importers": ({"ir"}, {"numpy", "ml_dtypes", "scipy"}),
    "importers/pytorch": ({"ir", "importers"}, {"numpy", "ml_dtypes", "torch", "scipy", "sympy"}),
    # Protocol buffers are the file format of TensorFlow and of ONNX; a broken file raises google.protobuf's error.
    "importers/tensorflow": ({"ir", "importers"}, {"numpy", "ml_dtypes", "scipy", "tensorflow", "keras", "google"}),
    "importers/jax": ({"ir", "importers"}, {"numpy", "ml_dtypes", "jax", "jaxlib"}),
    "importers/onnx": ({"ir", "importers"}, {"numpy", "ml_dtypes", "onnx", "google"}),
    "compiler": ({"ir"}, {"numpy", "ml_dtypes"}),
    "backends": ({"ir", "compiler", "backends/llvm", "backends/gpu"}, {"numpy", "ml_dtypes", "llvmlite", "scipy"}),
    "backends/gpu": ({"ir", "compiler", "backends", "backends/llvm"}, {"numpy", "ml_dtypes", "llvmlite", "pyopencl"}),
    # Shared by all devices that LLVM emits code for, so it knows none of them.
    "backends/llvm": ({"ir", "compiler"}, {"numpy", "ml_dtypes", "llvmlite"}),
}
FRAMEWORKS = {"torch", "tensorflow", "keras", "jax", "jaxlib", "onnx"}


def room_of(path: str) -> str:
    """Returns the room of a path below the root, or of a module below `trivium`; both are written with slashes."""
    return max((room for room in ROOMS if path == room or path.startswith(f"{room}/")), key=len, default="")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and the full name of everything that a file imports: `from a.b import c` gives `a.b.c`."""
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def complaint(room: str, name: str) -> str | None:
    """Returns what is wrong with importing `name` in `room`, if anything."""
    rooms, libraries = ROOMS[room]
    top, _, rest = name.partition(".")
    if top == "":
        return "is relative, expected an absolute import"
    if top == "trivium":
        target = room_of(rest.replace(".", "/"))
        return None if target == room or target in rooms else f"crosses from {room} into {target or 'the front door'}"
    if top in sys.stdlib_module_names or top in libraries:
        return None
    return f"is not a library of {room}, which has {', '.join(sorted(libraries))}"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_only_what_the_table_allows(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: import of {name} {wrong}"
        for path in sorted((ROOT / room).rglob("*.py"))
        if room_of(path.relative_to(ROOT).as_posix()) == room
        for line, name in imports(path)
        if (wrong := complaint(room, name))
    ]
    assert not found, "\n" + "\n".join(found)


def loaded_by(statement: str) -> set[str]:
    """Returns the top-level modules that a new interpreter has loaded after `statement`."""
    script = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_the_front_door_loads_nothing_heavy() -> None:
    assert not loaded_by("import trivium") & (FRAMEWORKS | {"llvmlite", "numpy", "scipy"})


def test_the_language_and_the_compiler_load_no_llvmlite() -> None:
    assert not loaded_by("import trivium.ir, trivium.compiler") & (FRAMEWORKS | {"llvmlite", "scipy"})


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("ir", "trivium.compiler"),
        ("ir", "llvmlite.ir"),
        ("compiler", "trivium.importers.jax"),
        ("compiler", "trivium.api"),
        ("importers", "torch"),
        ("importers/jax", "trivium.importers.onnx.rules"),
        ("backends", "torch"),
        ("backends/llvm", "trivium.backends.cpu.target"),
        ("ir", ".types"),
    ],
)
def test_the_rule_catches(room: str, name: str) -> None:
    assert complaint(room, name)
