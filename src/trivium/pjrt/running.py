"""Programs of a folder as checks of a plugin: compiled by it, and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import trivium
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.types import TensorType
from trivium.pjrt.kit import Check, Kit, NotImplementedByPlugin, expect

SUFFIXES = (".mlir", ".mlirbc")
TOLERANCE = 16
"""Units in the last place, of the largest number of an array."""


def program_checks(folder: Path) -> Iterator[Check]:
    """Yields a check for each program. Next to `name.mlir`, `name.npz` may have its arguments, by position."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):

        def run(kit: Kit, path: Path = path) -> None:
            compare(kit, trivium.load(path), arguments_of(path))

        run.__name__ = str(path.relative_to(folder))
        yield Check("program", run)


def arguments_of(path: Path) -> list[np.ndarray]:
    """Returns the recorded arguments of a program, or random ones."""
    recorded = path.with_suffix(".npz")
    types = trivium.load(path).main.function_type.inputs
    kinds = [kind for kind in types if isinstance(kind, TensorType)]
    if not recorded.exists():
        random = np.random.default_rng(0)
        return [random.integers(0, 2, kind.static_shape).astype(kind.dtype) for kind in kinds]
    with np.load(recorded) as found:
        stored = [found[str(index)] for index in range(len(found))]
    # NumPy stores types that it does not know as bytes.
    return [array.view(kind.dtype) if array.dtype != kind.dtype else array for array, kind in zip(stored, kinds)]  # noqa: B905


def compare(kit: Kit, module: Module, arguments: list[np.ndarray]) -> None:
    """Compiles and runs the program, and compares its results with the interpreter's."""
    from trivium.compiler.driver import CompileOptions

    try:
        executable = kit.client.compile(module, CompileOptions())
    except UnsupportedOpError as error:
        raise NotImplementedByPlugin(str(error)) from None
    results = executable.execute(*arguments)
    for number, (ours, expected) in enumerate(zip(results, trivium.evaluate(module, *arguments), strict=True)):
        expect(ours.dtype == expected.dtype, f"result {number} is {ours.dtype}, expected {expected.dtype}")
        expect(ours.shape == expected.shape, f"result {number} has shape {ours.shape}, expected {expected.shape}")
        expect(_near(ours, expected), f"result {number} is {ours!r:.80}, expected {expected!r:.80}")


def _near(ours: np.ndarray, expected: np.ndarray) -> bool:
    if ours.tobytes() == expected.tobytes():
        return True
    kind = ours.dtype
    if kind.kind in "biu" or "int" in kind.name:
        return bool(np.array_equal(ours, expected))  # an int4 of a value may have any upper bits
    import ml_dtypes

    wide = np.complex128 if kind.kind == "c" else np.float64
    one, other = ours.astype(wide), expected.astype(wide)
    step = float((ml_dtypes.finfo(kind) if kind.kind != "c" else np.finfo(kind)).eps)
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=TOLERANCE * step, atol=TOLERANCE * step * scale, equal_nan=True))
