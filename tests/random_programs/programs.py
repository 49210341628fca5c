"""Programs by their seeds, with all families."""

from __future__ import annotations

import numpy as np

from tests.random_programs import (
    beside,
    byte_products,
    contractions,
    control,
    elementwise,
    folds,
    gradients,
    images,
    movement,
    narrow,
    products,
    rows,
)
from tests.random_programs.generator import Family, Generator
from tests.random_programs.tracking import Tracker
from trivium.ir.func import Module

FAMILIES = (
    *elementwise.FAMILIES, *movement.FAMILIES, *folds.FAMILIES, *contractions.FAMILIES * 2,
    *images.FAMILIES * 2, *byte_products.FAMILIES * 2, *control.FAMILIES, *rows.FAMILIES,
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
    return _of_one_family(seed, narrow.attention)


def program_of_wide_attention(seed: int) -> Module:
    """The same of f32, whose factors may be rounded to tf32."""
    return _of_one_family(seed, narrow.wide_attention, tf32=True)


def program_of_products(seed: int) -> Module:
    """Returns a program that is one or two products, whose factors may be rounded to tf32."""
    return _of_one_family(seed, products.product, products.LARGEST, tf32=True)


def program_of_gradients(seed: int) -> Module:
    """Returns a program that is one or two gradients of convolutions of narrow numbers."""
    return _of_one_family(seed, gradients.gradient, gradients.LARGEST)


def _of_one_family(seed: int, family: Family, largest: int = beside.LARGEST, tf32: bool = False) -> Module:
    generator = Generator(seed, largest=largest)
    generator.tracker = Tracker(tf32)
    with np.errstate(all="ignore"):
        return generator.module((family,), generator.number(1, 2))
