"""Machine code agrees with the interpreter on random programs, and on earlier findings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.random_programs.arrays import SEED, grain, values
from tests.random_programs.campaign import judged
from tests.random_programs.programs import random_program
from tests.random_programs.runner import CONFIGURATIONS, Finding, difference, judge
from tests.random_programs.shrinker import shrink
from tests.random_programs.tracked import Tracked
from trivium.debug import shrinking
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.text import parse
from trivium.ir.types import BF16, F32, tensor

CASES = sorted(Path(__file__).with_name("cases").glob("*.mlir"))
COUNT = 400


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are not cached: each is compiled only once."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            judged(seed)
        except Finding as finding:
            pytest.fail(f"seed {seed}: {finding}")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    judge(parse(path.read_text(), path.name), CONFIGURATIONS)


def test_a_seed_gives_one_program() -> None:
    assert str(random_program(7)) == str(random_program(7))
    kind = tensor(3, 4, of=BF16)
    np.testing.assert_array_equal(values(5, kind), values(5, kind))


@pytest.mark.parametrize("first", [0, 1])
def test_all_families_take_part(first: int) -> None:
    """Even seeds are run in two of the configurations, odd ones in the other two: each pair has all families."""
    kinds = {type(op) for seed in range(first, COUNT, 2) for op in random_program(seed).main.body.block}
    assert {
        *(ops.ReduceWindow, ops.SelectAndScatter, ops.Convolution, ops.DotGeneral, ops.Reduce, ops.Gather),
        *(ops.Scatter, ops.Sort, ops.While, ops.If, ops.Case, ops.Pad, ops.Concatenate, ops.Convert, ops.Select),
        *(ops.DynamicSlice, ops.DynamicUpdateSlice, ops.RngBitGenerator, ops.Iota, ops.OptimizationBarrier),
    } <= kinds


def test_differences_are_seen() -> None:
    ones = np.ones((2, 3), np.float32)
    other = ones.copy()
    other[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    assert difference(ones, Tracked(ones)) == ""
    assert "at [1, 2]" in difference(other, Tracked(ones))
    assert difference(other, Tracked(ones, 1e-6)) == ""
    assert difference(np.zeros(2, np.float32), Tracked(-np.zeros(2, np.float32)))
    assert difference(np.full(2, np.nan, np.float32), Tracked(-np.full(2, np.nan, np.float32))) == ""


def test_the_grid_of_an_array() -> None:
    assert grain(np.array([1.5, -3.0, 0.0], np.float32)) == 0.5
    assert grain(np.array([0.1], np.float32)) < 2**-20
    assert grain(np.array([np.inf], np.float32)) == 0


def test_one_of_several_results_stays_alone() -> None:
    """Of an op with several results, those that were left out do not come back."""
    module = parse(
        """func.func @main(%x: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
          %0:2 = "stablehlo.sort"(%x, %i) ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
            %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }) : (tensor<3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>)
          return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>
        }"""
    )
    judged = []

    def minds(module: Module) -> str | None:
        judged.append(module)
        assert len(judged) < 100
        return "sort" if any(isinstance(op, ops.Sort) for op in module.main.body.block) else None

    assert len(shrinking.shrink(module, "sort", minds, SEED).main.returned) == 1


def test_failing_programs_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the only thing wrong is that a tangent is computed, nothing else is left of the program."""

    def minds(module: Module) -> str | None:
        return "tanh" if any(isinstance(op, ops.Tanh) for op in module.main.body.block) else None

    monkeypatch.setattr("tests.random_programs.shrinker.found_in", minds)
    seed = next(seed for seed in range(1000) if minds(random_program(seed)))
    op, end = shrink(random_program(seed), "tanh").main.body.block
    assert isinstance(op, ops.Tanh)
    assert op.operand.type.size <= 1
    assert end.operands == op.results
    assert op.operand.type.element_type in (F32, BF16) or op.operand.type.rank >= 0
