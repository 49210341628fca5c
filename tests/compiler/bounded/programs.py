"""Programs for several sizes, compared with the program that they were made from at each of them. What is in the space
behind the elements is NaN, or another number that results would show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import trivium
from trivium.compiler.bounded import BoundedProgram, bounded
from trivium.compiler.pipeline import inline_used
from trivium.ir.func import Module

Sizes = Mapping[str, int]


def combinations(**sizes: Sequence[int]) -> list[dict[str, int]]:
    """All combinations of sizes."""
    found: list[dict[str, int]] = [{}]
    for name, numbers in sizes.items():
        found = [{**each, name: number} for each in found for number in numbers]
    return found


def with_space(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """An array with space behind its elements, which is not zero."""
    kind = array.dtype.kind
    filled = np.full(shape, 77 if kind in "iu" else 1 if kind == "b" else np.nan).astype(array.dtype)
    filled[tuple(map(slice, array.shape))] = array
    return filled


def shape_at(shape: str, sizes: Sizes) -> list[int]:
    """A shape that is written with the names of sizes: `2*n 3`."""
    return [eval(extent, {}, dict(sizes)) for extent in shape.split()]


def drawn(shape: Sequence[int], kind: np.dtype, random: np.random.Generator) -> np.ndarray:
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        return random.integers(0, 5, shape).astype(kind)
    return random.uniform(-2, 2, shape).astype(kind)


def require_equal(
    module: Module,
    arguments: Sequence[Sequence[np.ndarray]],
    run: Callable[..., Any] | None = None,
    expected: Sequence[Any] = (),
) -> BoundedProgram:
    """Checks the program for the sizes of these lists of arguments; by default, as the interpreter runs it. `expected`:
    the module's own results, where they are known."""
    module = inline_used(module)
    program = bounded(module, [[x.shape for x in given] for given in arguments], {})
    run = run or (lambda *given: trivium.evaluate(program.module, *given))
    expected = expected or [trivium.evaluate(module, *given) for given in arguments]
    for number, given in enumerate(arguments):
        bounds = [[max(extent) for extent in extents] for extents in program.arguments]
        padded = [with_space(x, shape) for x, shape in zip(given, bounds, strict=True)]
        found = as_list(run(*padded, *program.extents_of(number)))
        for one, other, extents in zip(found, as_list(expected[number]), program.results, strict=True):
            part = np.asarray(one)[tuple(slice(extent[number]) for extent in extents)]
            np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-6)
    return program


def as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def require_text(
    text: str, shapes: Sequence[str], sizes: Sequence[Sizes], compiled: bool = False, seed: int = 0
) -> BoundedProgram:
    """Checks a program for all of these sizes. Shapes are written with their names: `2*n 3`."""
    module = trivium.parse(text)
    random = np.random.default_rng(seed)
    kinds = [kind.dtype for kind in module.main.function_type.inputs]
    given = [
        [drawn(shape_at(shape, each), kind, random) for shape, kind in zip(shapes, kinds, strict=True)]
        for each in sizes
    ]
    program = require_equal(module, given)
    if compiled:
        require_equal(module, given, trivium.compile(program.module))
    return program
