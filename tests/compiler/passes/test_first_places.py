"""Values of which only the first places are used. The form of rewritten programs is in `cases/first-places.mlir`."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.random_programs.arrays import arguments_of
from tests.random_programs.programs import random_program
from trivium.compiler.passes import first_places
from trivium.compiler.passes.first_places import FirstPlaces
from trivium.compiler.passes.inline import Inline
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.pipeline import CLEAN_UP, optimize
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

STEPS = 12


@pytest.mark.parametrize("seeds", [range(first, first + 75) for first in range(997000, 997300, 75)], ids=str)
def test_random_programs_compute_the_same(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_places, "LEAST", 0)
    changed = 0
    for seed in seeds:
        module = random_program(seed, STEPS)
        before = run_passes(module.clone(), (Inline(), CLEAN_UP))
        after = run_passes(before.clone(), (FirstPlaces(),), verify=True)
        if str(after) == str(before):
            continue
        changed += 1
        given = arguments_of(module.main)
        with np.errstate(all="ignore"):
            for one, other in zip(results(before, given), results(after, given), strict=True):
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                # Sums of products may be added in another order.
                one, other = (np.nan_to_num(x.astype(np.complex128)) for x in (one, other))
                np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-2)
    assert changed > 5


def results(module: Module, given: list[np.ndarray]) -> list[np.ndarray]:
    found = evaluate(module, *given)
    return [np.asarray(x) for x in (found if isinstance(found, list | tuple) else [found])]


def test_the_last_layer_of_a_classifier_is_computed_for_one_token() -> None:
    text = """func.func @main(%x: tensor<1x9x8xf32>, %w: tensor<8x16xf32>, %v: tensor<16x8xf32>) -> tensor<1x8xf32> {
      %h = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0]
        : (tensor<1x9x8xf32>, tensor<8x16xf32>) -> tensor<1x9x16xf32>
      %t = stablehlo.tanh %h : tensor<1x9x16xf32>
      %f = stablehlo.reshape %t : (tensor<1x9x16xf32>) -> tensor<9x16xf32>
      %d = stablehlo.dot_general %f, %v, contracting_dims = [1] x [0]
        : (tensor<9x16xf32>, tensor<16x8xf32>) -> tensor<9x8xf32>
      %b = stablehlo.reshape %d : (tensor<9x8xf32>) -> tensor<1x9x8xf32>
      %y = stablehlo.add %b, %x : tensor<1x9x8xf32>
      %s = stablehlo.slice %y [0:1, 0:1, 0:8] : (tensor<1x9x8xf32>) -> tensor<1x1x8xf32>
      %r = stablehlo.reshape %s : (tensor<1x1x8xf32>) -> tensor<1x8xf32>
      return %r : tensor<1x8xf32> }"""
    graph = optimize(trivium.parse(text))
    shapes = [op.result.type.shape for op in graph.walk() if isinstance(op, ops.DotGeneral)]
    assert shapes == [(1, 1, 16), (1, 8)]
