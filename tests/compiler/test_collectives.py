"""Collectives: the results of each kind for devices that run one program together, in the interpreter of programs;
errors in malformed ones; and their behaviour on the CPU for a device that runs alone."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.backends.cpu.client import CpuClient
from trivium.compiler.analysis import program_cost
from trivium.compiler.collectives import (
    NAMES,
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveKind,
    CollectivePermute,
    Groups,
    ReduceScatter,
    result_shape,
)
from trivium.compiler.driver import CompileOptions
from trivium.compiler.interpreter import interpret, interpret_devices
from trivium.compiler.kernel import numpy_dtype
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Array, Collective, Input, Output, Program, Switch
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse

SHAPE = (4, 6)
PAIRS = ((0, 1), (2, 3))
ADDED = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %1 = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %1 : tensor<f32>
})"""


def program_of(kind: CollectiveKind, groups: Groups, dtype: str = "f32", is_complex: bool = False) -> Program:
    """Returns a program of one collective."""
    shape = (*SHAPE, 2) if is_complex else SHAPE
    expected = result_shape(kind, shape, len(groups[0]) if groups else 1)
    assert expected is not None, "the test's groups divide the operand"
    x = Array("x", dtype, shape, Input(0), is_complex)
    y = Array("y", dtype, expected, Output(0), is_complex)
    return Program("p", [x], [y], [Collective(kind, groups, x, y)])


def arrays(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(count)]


def reference(op: str, attributes: str, region: str, result: tuple[int, ...], groups: Groups) -> list[np.ndarray]:
    """Returns the results of the op in the interpreter of the language, on four replicas."""
    kind = f"tensor<{'x'.join(map(str, result))}xf32>"
    name = "source_target_pairs" if op == "collective_permute" else "replica_groups"
    matrix = f"dense<{[list(group) for group in groups]}> : tensor<{len(groups)}x{len(groups[0])}xi64>"
    module = parse(f"""func.func @main(%x: tensor<4x6xf32>) -> {kind} {{
      %0 = "stablehlo.{op}"(%x) {region} {{{name} = {matrix}{attributes}}} : (tensor<4x6xf32>) -> {kind}
      return %0 : {kind}
    }}""")
    return [found for (found,) in run_parallel(module, [["main"]] * 4, [[array] for array in arrays(4)])]


@pytest.mark.parametrize("groups", [PAIRS, ((0, 1, 2, 3),), ((3, 0), (1, 2))], ids=str)
@pytest.mark.parametrize(
    ("kind", "attributes", "region"),
    [
        (AllReduce("add"), "", ADDED),
        (AllGather(1), ", all_gather_dim = 1 : i64", ""),
        (ReduceScatter("add", 0), ", scatter_dimension = 0 : i64", ADDED),
        (AllToAll(0, 1), ", split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = {} : i64", ""),
    ],
    ids=lambda value: NAMES.get(type(value), "") if not isinstance(value, str) else "",
)
def test_kinds_mean_what_the_ops_of_stablehlo_do(
    kind: CollectiveKind, attributes: str, region: str, groups: Groups
) -> None:
    program = program_of(kind, groups)
    verify(program)
    found = interpret_devices(program, [[array] for array in arrays(4)])
    result = program.outputs[0].shape
    expected = reference(NAMES[type(kind)], attributes.format(len(groups[0])), region, result, groups)
    for (array,), wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_a_permutation_gives_zeros_to_devices_that_are_not_targets() -> None:
    groups = ((0, 1), (1, 2))
    program = program_of(CollectivePermute(), groups)
    verify(program)
    found = [array for (array,) in interpret_devices(program, [[array] for array in arrays(4)])]
    for array, wanted in zip(found, reference("collective_permute", "", "", SHAPE, groups), strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert not found[0].any()
    assert not found[3].any()


def test_complex_numbers_are_added_by_parts() -> None:
    one, other = (array + 1j * array[::-1] for array in arrays(2))
    program = program_of(AllReduce("add"), ((0, 1),), is_complex=True)
    for (array,) in interpret_devices(program, [[one], [other]]):
        np.testing.assert_array_equal(array, one + other)


def test_devices_meet_inside_branches() -> None:
    """Each device takes a branch that depends on its own data; those that take part in the same collective take the
    same branch."""
    x, y = Array("x", "f32", SHAPE, Input(1)), Array("y", "f32", SHAPE, Output(0))
    which = Array("which", "i32", (), Input(0))
    branches = [[Collective(AllReduce(op), PAIRS, x, y)] for op in ("add", "multiply")]
    program = Program("p", [which, x], [y], [Switch(which, branches)])  # type: ignore[list-item]
    given = arrays(4)
    taken = [np.int32(index) for index in (0, 0, 1, 1)]
    found = [array for (array,) in interpret_devices(program, list(zip(taken, given, strict=True)))]
    np.testing.assert_array_equal(found[1], given[0] + given[1])
    np.testing.assert_array_equal(found[2], given[2] * given[3])
    taken[3] = np.int32(0)
    with pytest.raises(ExecutionError, match="device 2 waits in all_reduce for others of its group"):
        interpret_devices(program, list(zip(taken, given, strict=True)))


def test_devices_that_do_not_run_are_named() -> None:
    with pytest.raises(ExecutionError, match="all_reduce needs device 1, but only 1 run"):
        interpret(program_of(AllReduce("add"), ((0, 1),)), *arrays(1))
    with pytest.raises(ExecutionError, match=r"all_gather: device 2 is in no group of \[\[0, 1\]\]"):
        interpret_devices(program_of(AllGather(0), ((0, 1),)), [[array] for array in arrays(3)])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((AllReduce("add"), ((0, 0),)), "in which a device repeats"),
        ((AllReduce("sine2"), ((0, 1),)), "'sine2' is not a scalar operation"),
        ((AllGather(0), ((0, 1),)), "does not fit x: 4x6xf32 at input 0 in a group of 2"),
        ((ReduceScatter("add", 1), ((0, 1, 2, 3),)), "does not fit x: 4x6xf32 at input 0 in a group of 4"),
        ((CollectivePermute(), ((0, 1), (2, 1))), "no source or target repeats"),
        ((CollectivePermute(), ((0, 1, 2),)), "expected pairs"),
    ],
)
def test_malformed_ones_are_refused(step: tuple[CollectiveKind, Groups], message: str) -> None:
    x, y = Array("x", "f32", SHAPE, Input(0)), Array("y", "f32", SHAPE, Output(0))
    with pytest.raises(CompileError, match=message):
        verify(Program("p", [x], [y], [Collective(*step, x, y)]))


def test_complex_products_are_refused() -> None:
    with pytest.raises(CompileError, match="complex numbers are combined by add only"):
        verify(program_of(AllReduce("multiply"), ((0, 1),), is_complex=True))


def test_text_and_cost() -> None:
    program = program_of(AllToAll(0, 1), PAIRS)
    line = "all_to_all split_dimension=0 concat_dimension=1 of [[0, 1], [2, 3]] x to y"
    assert line in str(program)
    assert program_cost(program).nbytes == 2 * 4 * 24


def test_a_device_alone_on_the_cpu() -> None:
    (x,) = arrays(1)
    for kind in (AllReduce("add"), AllGather(0), ReduceScatter("add", 1), AllToAll(0, 1)):
        (found,) = CpuClient().load_program(program_of(kind, ((0,),)), CompileOptions()).execute(x)
        np.testing.assert_array_equal(found, x)
    (found,) = CpuClient().load_program(program_of(CollectivePermute(), ((1, 2),)), CompileOptions()).execute(x)
    np.testing.assert_array_equal(found, np.zeros_like(x))


def test_a_device_whose_group_does_not_run() -> None:
    executable = CpuClient().load_program(program_of(AllReduce("add"), ((0, 1),)), CompileOptions())
    with pytest.raises(ExecutionError, match="waits in a collective for another one of its group"):
        executable.execute(*arrays(1))


def test_what_the_cpu_cannot_combine() -> None:
    with pytest.raises(CompileError, match="all_reduce of f8E5M2 by add is not supported on the CPU"):
        CpuClient().load_program(program_of(AllReduce("add"), ((0, 1),), "f8E5M2"), CompileOptions())


NARROW = """func.func @main(%x: tensor<2x4x{kind}>) -> (tensor<2x4x{kind}>, tensor<2x2x{kind}>) {{
  %0 = "stablehlo.all_reduce"(%x) ({{
  ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):
    %1 = stablehlo.add %a, %b : tensor<{kind}>
    stablehlo.return %1 : tensor<{kind}>
  }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<2x4x{kind}>) -> tensor<2x4x{kind}>
  %2 = "stablehlo.reduce_scatter"(%x) ({{
  ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):
    %3 = stablehlo.maximum %a, %b : tensor<{kind}>
    stablehlo.return %3 : tensor<{kind}>
  }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64}}
    : (tensor<2x4x{kind}>) -> tensor<2x2x{kind}>
  return %0, %2 : tensor<2x4x{kind}>, tensor<2x2x{kind}>
}}"""


@pytest.mark.parametrize("kind", ["i2", "i4", "ui4", "f8E4M3FN", "f8E5M2", "f4E2M1FN"])
def test_narrow_numbers_are_combined_as_wider_ones(kind: str) -> None:
    """Which the CPU can combine; the results are the same, with integers that wrap."""
    module = parse(NARROW.format(kind=kind))
    random, dtype = np.random.default_rng(0), numpy_dtype(kind)
    given = [[random.integers(0 if kind == "ui4" else -2, 2, (2, 4)).astype(dtype)] for _ in range(2)]
    optimized = optimize(module)
    wanted, found = (run_parallel(each, [["main"]] * 2, given) for each in (module, optimized))
    for one, other in zip(found, wanted, strict=True):
        for array, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(array.astype(np.float32), expected.astype(np.float32))
    reductions = [op for op in optimized.walk() if isinstance(op, ops.AllReduce | ops.ReduceScatter)]
    types = {str(kind.element_type) for op in reductions for kind in op.operand_types}
    assert len(reductions) == 2
    assert types == {"f32" if kind.startswith("f") else "ui8" if kind == "ui4" else "i8"}
