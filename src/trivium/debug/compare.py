"""Compares a program with its reference semantics, from the framework's own values to those of the machine code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.debug.compiled import first_wrong_op
from trivium.debug.differences import difference
from trivium.debug.parting import Parting
from trivium.executable import compile_module
from trivium.ir.errors import Error
from trivium.ir.func import Module

if TYPE_CHECKING:
    import torch


def compare(
    program: Module | Callable[..., object], *arguments: object, device: str = "cpu", tolerance: float | None = None
) -> Parting | None:
    """Returns the first op that Trivium gets wrong for these arguments; `None` if the results are right.

    `program` is a `Module`, which is compared with what its ops mean, or a PyTorch `nn.Module` or a JAX function, which
    are compared with the framework's own values, too. `tolerance` is relative to the greatest element of a result; by
    default it follows from the type.
    """
    if isinstance(program, Module):
        return first_wrong_op(program, arguments, device=device, tolerance=tolerance)
    pytorch = sys.modules.get("torch")
    if pytorch is not None and isinstance(program, pytorch.nn.Module):
        model: Any = program
        return _compare_pytorch(model, arguments, device, tolerance)
    if callable(program) and "jax" in sys.modules:
        return _compare_jax(program, arguments, device, tolerance)
    raise Error(f"the program is a {type(program).__name__}, expected a Module, a PyTorch module or a JAX function")


def _compare_pytorch(
    model: torch.nn.Module, args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    from torch.utils._pytree import tree_leaves

    from trivium.debug.pytorch import array_of, first_wrong_node, reference_of
    from trivium.importers.pytorch import import_module

    module = import_module(model, args)
    inputs = [array_of(leaf) for leaf in tree_leaves(tuple(args))]
    if _agree(module, inputs, reference_of(model, args), device, tolerance):
        return None
    wrong = first_wrong_node(model, args, tolerance)
    return wrong or first_wrong_op(module, inputs, device=device, tolerance=tolerance)


def _compare_jax(
    function: Callable[..., object], args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    import jax

    from trivium.debug.jax import first_wrong_equation, reference_of
    from trivium.importers.jax import import_module

    module = import_module(function, tuple(args), {})
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
    if _agree(module, inputs, reference_of(function, args), device, tolerance):
        return None
    wrong = first_wrong_equation(function, args, tolerance)
    return wrong or first_wrong_op(module, inputs, device=device, tolerance=tolerance)


def _agree(
    module: Module,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    device: str,
    tolerance: float | None,
) -> bool:
    """Whether a compiled program gives the framework's results. A program may have further results, after them."""
    ours = compile_module(module, device=device, threads=None, fast_math=False)(*inputs)
    return not any(
        mine.shape != theirs.shape or difference(mine, theirs, tolerance)
        for mine, theirs in zip(ours, expected, strict=False)
    )
