"""A row of the table: a program, and the calls of its contenders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]
"""Runs the program once, on inputs that are ready, and returns when the result is complete."""

OURS = "trivium"


@dataclass(frozen=True)
class Row:
    """A program that `make` prepares for each contender, Trivium under the name `OURS`. All contenders compute the
    same, which is checked to `tolerance` of the largest number; if it is None, it is not checked (random numbers,
    training steps). With `flops`, the share of the processor's limit is shown; `quick` rows are those of `--quick`."""

    name: str
    make: Callable[[int], Mapping[str, Call]]
    flops: float | None = None
    tolerance: float | None = 1e-3
    quick: bool = False


FAMILIES = {
    "dispatch": "benchmarks.rows.dispatch",
    "torch dispatch": "benchmarks.rows.torch_dispatch",
    "kernels": "benchmarks.rows.kernels",
    "loops": "benchmarks.rows.loops",
    "training": "benchmarks.rows.training",
    "pointwise": "benchmarks.rows.pointwise",
    "products": "benchmarks.rows.products",
    "narrow": "benchmarks.rows.narrow",
    "models": "benchmarks.rows.models",
    "sizes": "benchmarks.rows.sizes",
    "jax ops": "benchmarks.rows.jax_ops",
    "torch ops": "benchmarks.rows.torch_ops",
    "torch training": "benchmarks.rows.torch_training",
    "keras": "benchmarks.rows.keras",
}
"""The modules that define `ROWS`: each family needs different frameworks, and runs in a separate process."""
