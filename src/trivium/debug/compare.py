"""Compares a program with its reference semantics, from the framework's own values to those of the machine code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.debug.compiled import first_wrong_op
from trivium.debug.differences import Difference, difference
from trivium.debug.parting import Parting
from trivium.executable import compile_module
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.text import print_op

if TYPE_CHECKING:
    import onnx
    import torch


def compare(
    program: Module | Callable[..., object] | onnx.ModelProto,
    *arguments: object,
    device: str = "cpu",
    tolerance: float | None = None,
) -> Parting | None:
    """Returns the first op that Trivium gets wrong for these arguments; `None` if the results are right.

    `program` is a `Module`, which is compared with what its ops mean, or a PyTorch `nn.Module`, a function or Keras
    model of TensorFlow, a JAX function, or an ONNX model, which are compared with the framework's own values, too.
    `tolerance` is relative to the greatest element of a result; by default it follows from the type.
    """
    if isinstance(program, Module):
        return first_wrong_op(program, arguments, device=device, tolerance=tolerance)
    pytorch = sys.modules.get("torch")
    if pytorch is not None and isinstance(program, pytorch.nn.Module):
        model: Any = program
        return _compare_pytorch(model, arguments, device, tolerance)
    if "tensorflow" in sys.modules:
        from trivium.debug.tensorflow import is_tensorflow

        if is_tensorflow(program, arguments):
            return _compare_tensorflow(program, arguments, device, tolerance)
    proto = sys.modules.get("onnx")
    if proto is not None and isinstance(program, proto.ModelProto):
        graph: Any = program
        return _compare_onnx(graph, arguments, device, tolerance)
    if callable(program) and "jax" in sys.modules:
        return _compare_jax(program, arguments, device, tolerance)
    expected = "a Module, a PyTorch module, a function of TensorFlow or JAX, or an ONNX model"
    raise Error(f"the program is a {type(program).__name__}, expected {expected}")


def _compare_pytorch(
    model: torch.nn.Module, args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    from torch.utils._pytree import tree_leaves

    from trivium.debug.pytorch import array_of, first_wrong_node, reference_of
    from trivium.importers.pytorch import import_module

    module = import_module(model, args)
    inputs = [array_of(leaf) for leaf in tree_leaves(tuple(args))]
    unlike = _results_apart(module, inputs, reference_of(model, args), device, tolerance)
    if unlike is None:
        return None
    wrong = first_wrong_node(model, args, tolerance)
    return wrong or first_wrong_op(module, inputs, device=device, tolerance=tolerance) or unlike


def _compare_tensorflow(
    program: object, args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    from trivium.debug.tensorflow import Run

    run = Run(program, args)
    unlike = _results_apart(run.module, run.arguments, run.results, device, tolerance)
    if unlike is None:
        return None
    wrong = run.compare(tolerance)
    return wrong or first_wrong_op(run.module, run.arguments, device=device, tolerance=tolerance) or unlike


def _compare_onnx(
    model: onnx.ModelProto, args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    from trivium.debug.onnx import Run

    run = Run(model, args)
    unlike = _results_apart(run.module, run.arguments, run.results, device, tolerance)
    if unlike is None:
        return None
    wrong = run.compare(tolerance)
    return wrong or first_wrong_op(run.module, run.arguments, device=device, tolerance=tolerance) or unlike


def _compare_jax(
    function: Callable[..., object], args: Sequence[object], device: str, tolerance: float | None
) -> Parting | None:
    import jax

    from trivium.debug.jax import first_wrong_equation, reference_of
    from trivium.importers.jax import import_module

    module = import_module(function, tuple(args), {})
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
    unlike = _results_apart(module, inputs, reference_of(function, args), device, tolerance)
    if unlike is None:
        return None
    wrong = first_wrong_equation(function, args, tolerance)
    return wrong or first_wrong_op(module, inputs, device=device, tolerance=tolerance) or unlike


def _results_apart(
    module: Module,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    device: str,
    tolerance: float | None,
) -> Parting | None:
    """Returns the first result of a compiled program that is not the framework's, for the case that no op is found that
    makes it so. A program may have further results, after those."""
    ours = compile_module(module, device=device, threads=None, fast_math=False)(*inputs)
    for index, (mine, theirs) in enumerate(zip(ours, expected, strict=False)):
        found = difference(mine, theirs, tolerance) if mine.shape == theirs.shape else _other_shape(mine, theirs)
        if found is not None:
            ends = module.main.body.block.last
            text = print_op(ends) if ends is not None else ""
            return Parting(text, "", index, found, "running the program, of which each op alone is right")
    return None


def _other_shape(ours: np.ndarray, expected: np.ndarray) -> Difference:
    return Difference((), f"an array of shape {ours.shape}", f"one of shape {expected.shape}", ours.size, ours.size)
