"""Programs with a clock around each step give the results of those without, and record every step that runs."""

import numpy as np

import trivium
from trivium.backends.cpu.assembly import assemble_timed
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.timing import MOST_EVENTS, events, table
from trivium.compiler.program import Copy, Launch

LOOP = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %less = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.sort %y, dimension = 0, is_stable = true COMPARATOR
      stablehlo.return %next, %z : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}
"""
SORT = """"stablehlo.sort"(%y) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<4xf32>) -> tensor<4xf32>"""
TEXT = LOOP.replace("stablehlo.sort %y, dimension = 0, is_stable = true COMPARATOR", SORT)


def test_steps_of_a_loop_are_recorded_each_time() -> None:
    run = trivium.compile(trivium.parse(TEXT), threads=1)
    artifact, steps = assemble_timed(run.loaded.stages, run.loaded.stages.target)
    record = table()
    timed = CpuExecutable(artifact, run.loaded.module_constants(), record)
    x = np.array([2, 4, 1, 3], np.float32)
    (result,) = timed.execute(x, np.int32(3))
    np.testing.assert_array_equal(result, run(x, np.int32(3))[0])

    found = events(record)
    assert all(isinstance(step, Launch | Copy) for step in steps)
    assert set(found["step"]) == set(range(len(steps)))
    assert np.bincount(found["step"]).max() >= 3
    assert (found["end"] >= found["start"]).all()
    assert (np.diff(found["start"]) >= 0).all()


def test_a_full_table_keeps_the_first_events() -> None:
    record = table()
    record[0] = MOST_EVENTS + 7
    assert len(events(record)) == MOST_EVENTS
