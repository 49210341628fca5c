"""StableHLO's programs of dynamic shape, with shapes and arguments chosen for them, and their results in XLA."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.ir import xla
from trivium.ir.func import Module
from trivium.ir.text import parse
from trivium.ir.types import I64, TensorType, tensor

IN_BOUNDS = {"dynamic_slice", "dynamlic_slice_t2"}
"""Programs that slice an array over its whole extent, starting at an argument, which can therefore only be 0."""


@dataclass(frozen=True)
class Program:
    """A program whose first arguments are its dimension variables. Their values are all different. The `?` of the other
    arguments take these values in turn."""

    name: str
    text: str
    module: Module
    sizes: tuple[int, ...]

    @staticmethod
    def read(path: Path, sizes: Sequence[int]) -> Program:
        text = path.read_text()
        module = parse(text, path.name)
        scalars = itertools.takewhile(lambda argument: argument.type is tensor(of=I64), module.main.arguments)
        return Program(path.stem.removesuffix("_dynamic"), text, module, tuple(sizes[: len(list(scalars))]))

    def with_text(self, text: str) -> Program:
        return replace(self, text=text, module=parse(text))

    @property
    def types(self) -> list[TensorType]:
        """The types of the arguments that are not dimension variables."""
        return [argument.type for argument in self.module.main.arguments[len(self.sizes) :]]

    @property
    def result_types(self) -> Sequence[Any]:
        return self.module.main.function_type.results

    def arrays(self) -> list[np.ndarray]:
        """Returns the other arguments, which are the same each time."""
        random = np.random.default_rng(len(self.name))
        extents = itertools.cycle(self.sizes)
        shapes = [[next(extents) if extent is None else extent for extent in kind.shape] for kind in self.types]
        arrays = [_drawn(random, kind.dtype, shape) for kind, shape in zip(self.types, shapes, strict=True)]
        return arrays if self.name not in IN_BOUNDS else [arrays[0], np.zeros_like(arrays[1])]

    @property
    def arguments(self) -> list[np.ndarray]:
        return [*map(np.int64, self.sizes), *self.arrays()]


def _drawn(random: np.random.Generator, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """Returns small numbers: integers serve as indices and shift distances too."""
    if dtype.kind in "iub":
        return random.integers(0, 2 if dtype == np.bool_ else 4, shape).astype(dtype)
    numbers = random.standard_normal(shape)
    return (numbers + 1j * random.standard_normal(shape) if dtype.kind == "c" else numbers).astype(dtype)


# XLA


def run_by_xla(program: Program) -> list[np.ndarray]:
    """Returns XLA's results for these shapes: it makes the program static, then compiles it."""
    arrays = program.arrays()
    return xla.run(_called_with_static_shapes(program, arrays), arrays, refine=True)


def _called_with_static_shapes(program: Program, arrays: Sequence[np.ndarray]) -> str:
    """Returns the program's text with another `@main`, which takes arguments of these shapes and calls the original
    one."""
    wanted, given = program.types, [k.with_shape(a.shape) for k, a in zip(program.types, arrays, strict=True)]
    arguments = ", ".join(f"%a{index}: {kind}" for index, kind in enumerate(given))
    lines = [f"%s{index} = stablehlo.constant dense<{size}> : tensor<i64>" for index, size in enumerate(program.sizes)]
    for index, (kind, inner) in enumerate(zip(given, wanted, strict=True)):
        lines.append(f"%d{index} = stablehlo.convert %a{index} : ({kind}) -> {inner}")
    called = [*(f"%s{index}" for index in range(len(program.sizes))), *(f"%d{index}" for index in range(len(given)))]
    signature = program.module.main.function_type
    count, results = len(signature.results), ", ".join(map(str, signature.results))
    lines.append(f"%r:{count} = call @dynamic({', '.join(called)}) : {signature}")
    lines.append(f"return {', '.join(f'%r#{index}' for index in range(count))} : {results}")
    main = f"func.func public @main({arguments}) -> ({results}) {{\n" + "\n".join(lines) + "\n}\n"
    return program.text.replace("func.func public @main", f"{main} func.func private @dynamic", 1)
