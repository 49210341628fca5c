"""Small programs for the tests of patterns: rewriting by one set of patterns does not change any bit of the results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Constant
from trivium.ir.types import TensorType


def splat(b: Builder, number: complex, kind: TensorType) -> Value:
    """Returns a constant of equal elements."""
    return b.add(Constant(DenseElements.splat(np.asarray(number).astype(kind.dtype), kind)))


def names(module: Module) -> list[str]:
    """Returns the ops of the program, without constants and the return."""
    found = [op.NAME.rpartition(".")[2] for op in module.main.body.block if op is not module.main.body.block.last]
    return [name for name in found if name != "constant"]


def rewritten(module: Module, patterns: PatternSet, *lists: Sequence[np.ndarray]) -> Module:
    """Returns the program after the patterns, without unused ops; its results are the same for each list of
    arguments."""
    after = module.clone()
    rewrite_to_fixpoint(after, patterns)
    after.verify()
    for op in reversed(list(after.main.body.block)):
        if op is not after.main.body.block.last and not any(list(result.users) for result in op.results):
            op.erase()
    for arguments in lists:
        with np.errstate(all="ignore"):
            pairs = zip(evaluate(module, *arguments), evaluate(after, *arguments), strict=True)
        for wanted, found in pairs:
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert bits(found) == bits(wanted), str(module)
    return after


def bits(array: np.ndarray) -> bytes:
    """Returns the bytes of the elements; all NaN have the same bytes."""
    array = np.ascontiguousarray(array)
    parts = array.view(array.real.dtype) if array.dtype.kind == "c" else array
    with np.errstate(all="ignore"):
        return np.where(parts != parts, np.zeros_like(parts) - 1, parts).tobytes() + (parts != parts).tobytes()
