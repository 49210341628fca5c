"""Reduces a program that fails, and describes the failure: its results are wrong, or compiling or running it raises an
error or ends the process."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from trivium.debug.differences import difference
from trivium.debug.shrinking import CRASH, SECONDS, apart, shrink
from trivium.debug.values import random_array
from trivium.executable import compile_module
from trivium.ir.attributes import Integer
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType

SEED = "trivium.seed"
"""The attribute of an argument from which its values follow; without it, they follow from its position."""

WRONG = "wrong results"

SURPRISES = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions that a mistake in the compiler may raise, in addition to an `Error`."""


def minify(module: Module, *, device: str = "cpu", seconds: float = SECONDS) -> tuple[Module, str]:
    """Returns the smallest program found that fails as `module` does on `arguments_of` its entry, and how it fails.
    Raises an `Error` if it does not fail."""
    module.verify()
    arguments_of(module.main)
    judge = functools.partial(failure, device=device)
    key = apart(judge)(module)
    if key is None:
        raise Error(
            f"{module.main.sym_name} gives the right results for random arguments, expected a program that fails"
        )
    return shrink(module, key, apart(judge) if key == CRASH else judge, SEED, seconds), key


def failure(module: Module, *, device: str = "cpu") -> str | None:
    """Returns how a program fails on `arguments_of` its entry: a text that is equal for failures of one kind."""
    try:
        module.verify()
        inputs = arguments_of(module.main)
        expected = evaluate(module, *inputs)
    except (Error, *SURPRISES):
        return None  # the program is not valid
    try:
        results = compile_module(module, device=device, threads=None, fast_math=False)(*inputs)
    except (Error, *SURPRISES) as error:
        return f"{type(error).__name__} in {_place(error)}"
    wrong = itertools.starmap(difference, zip(results, expected, strict=True))
    return WRONG if any(found is not None for found in wrong) else None


def arguments_of(main: Function) -> list[np.ndarray]:
    """Returns random arguments of a function, always the same ones: see `SEED`."""
    found = []
    for index, kind in enumerate(main.function_type.inputs):
        if not isinstance(kind, TensorType) or not kind.is_static:
            raise Error(f"argument {index} has type {kind}, expected a tensor of static shape")
        seed = main.argument_attributes(index).get(SEED)
        generator = np.random.default_rng(seed.value if isinstance(seed, Integer) else index)
        found.append(random_array(generator, kind))
    return found


def _place(error: Exception) -> str:
    """Returns the function in which an exception was raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        place, trace = trace.tb_frame.f_code.co_name, trace.tb_next
    return place
