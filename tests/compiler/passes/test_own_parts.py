"""Programs whose values devices compute in parts have the same results as on one device."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.compiler.passes.sharded_programs import MESH, Programs
from tests.compiler.passes.test_partition import run
from trivium.compiler.passes import own_parts
from trivium.compiler.passes.partition import Partitioned, partition
from trivium.compiler.pipeline import inline
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ROWS, WHOLE = '#sdy.sharding<@mesh, [{"x"}, {}]>', "#sdy.sharding<@mesh, [{}, {}]>"


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_random_programs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where it would take more work than one run for all devices."""
    monkeypatch.setattr(own_parts, "MOST_REPEATED", np.inf)
    ways: Counter[bool] = Counter()
    for seed in range(first, first + 40):
        text, plain, shapes = Programs(seed).texts()
        random = np.random.default_rng(seed)
        arrays = [random.integers(-5, 6, shape).astype(np.int32) for shape in shapes]
        wanted = evaluate(parse(plain), *arrays)
        found = partition(inline(parse(text)), 1, 4)
        found.module.verify()
        ways[found.is_shared] += 1
        results = run(found, *arrays)
        for device in range(4):
            own = results[0 if found.is_shared else device]
            for whole, result, held in zip(wanted, own, found.results, strict=True):
                begins = held.part.begins[device]
                places = tuple(map(slice, begins, np.add(begins, held.part.shape)))
                np.testing.assert_array_equal(result, whole if held.is_whole else whole[places], f"seed {seed}")
    assert ways[False] >= 10


def layer(batch: int, width: int, sharding: str = ROWS) -> Partitioned:
    """A product of rows that devices share out with weights that each of them has."""
    kinds = f"tensor<{batch}x{width}xf32>", f"tensor<{width}x{width}xf32>"
    return partition(
        inline(
            parse(f"""{MESH}
    func.func @main(%x: {kinds[0]} {{sdy.sharding = {sharding}}}, %w: {kinds[1]} {{sdy.sharding = {WHOLE}}})
        -> ({kinds[0]} {{sdy.sharding = {sharding}}}) {{
      %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({kinds[0]}, {kinds[1]}) -> {kinds[0]}
      %y = stablehlo.tanh %p : {kinds[0]}
      return %y : {kinds[0]}
    }}""")
        ),
        1,
        4,
    )


def test_devices_compute_parts_unless_one_run_takes_less_work() -> None:
    """Of rows in two parts, four devices compute each twice. Few elements do not matter."""
    both = '#sdy.sharding<@mesh, [{"x", "y"}, {}]>'
    assert not layer(512, 256, both).is_shared
    assert layer(512, 256).is_shared
    assert layer(8, 1024, both).is_shared  # each device would read all weights for two rows
    assert not layer(8, 16).is_shared


def test_arguments_are_taken_as_devices_hold_them() -> None:
    found = layer(8, 16)
    assert [held.is_whole for held in (*found.arguments, *found.results)] == [False, True, False]
    assert not found.has_device
    assert [value.type.static_shape for value in found.module.main.arguments] == [(4, 16), (16, 16)]


def test_callbacks_are_called_once() -> None:
    """They have effects: if each device ran the program, there would be one call for each."""
    kind = "tensor<4x6xf32>"
    found = partition(
        inline(
            parse(f"""{MESH}
    func.func @main(%x: {kind} {{sdy.sharding = {ROWS}}}) -> ({kind} {{sdy.sharding = {ROWS}}}) {{
      %y = stablehlo.tanh %x : {kind}
      stablehlo.custom_call @print(%x) {{has_side_effect = true}} : ({kind}) -> ()
      return %y : {kind}
    }}""")
        ),
        1,
        4,
    )
    assert found.is_shared


def test_a_value_that_is_also_needed_whole_is_computed_whole() -> None:
    kind = "tensor<4x6xf32>"
    found = partition(
        inline(
            parse(f"""{MESH}
    func.func @main(%x: {kind} {{sdy.sharding = {ROWS}}})
        -> ({kind} {{sdy.sharding = {ROWS}}}, {kind} {{sdy.sharding = {WHOLE}}}) {{
      %y = stablehlo.negate %x : {kind}
      %z = stablehlo.tanh %y : {kind}
      return %z, %y : {kind}, {kind}
    }}""")
        ),
        1,
        4,
    )
    assert [held.is_whole for held in (*found.arguments, *found.results)] == [True, False, True]
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for device, (rows, whole) in enumerate(run(found, x)):
        np.testing.assert_array_equal(whole, -x)
        first = found.results[0].part.begins[device][0]
        np.testing.assert_allclose(rows, np.tanh(-x[first : first + 2]), rtol=1e-6)
