"""Programs by their seeds, with all families."""

from __future__ import annotations

import numpy as np

from tests.random_programs import beside, contractions, control, elementwise, folds, movement, narrow
from tests.random_programs.generator import Generator
from trivium.ir.func import Module

FAMILIES = (
    *elementwise.FAMILIES, *movement.FAMILIES, *folds.FAMILIES, *contractions.FAMILIES * 2, *control.FAMILIES,
)  # fmt: skip
LEAST_STEPS, MOST_STEPS = 3, 7
MOST_BESIDE = 12


def random_program(seed: int, steps: int | None = None) -> Module:
    """Returns a program, the same for the same seed; its arguments are `arrays.arguments_of` its main function."""
    generator = Generator(seed)
    if steps is None:
        steps = generator.number(LEAST_STEPS, MOST_STEPS)
    with np.errstate(all="ignore"):
        return generator.module(FAMILIES, steps)


def program_of_neighbours(seed: int) -> Module:
    """Returns a program whose kernels can share launches."""
    generator = Generator(seed, MOST_BESIDE, beside.LARGEST)
    with np.errstate(all="ignore"):
        return generator.module(beside.FORMS, generator.number(LEAST_STEPS, MOST_BESIDE))


def program_of_attention(seed: int) -> Module:
    """Returns a program that is one or two times attention of narrow numbers."""
    generator = Generator(seed, largest=beside.LARGEST)
    with np.errstate(all="ignore"):
        return generator.module((narrow.attention,), generator.number(1, 2))
