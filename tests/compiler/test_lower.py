"""Programs as a whole: how kernels are named, which copies remain, which values are views or updated in place, and what
is refused. Each program also computes what its module means."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.interpreted import expect_same, function, lowered
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.program import Copy, Launch, Output, Program, While, walk
from trivium.compiler.verifier import verify
from trivium.ir.errors import CompileError
from trivium.ir.text import parse

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
K = "tensor<2x3x4xf32>"


def of(kind: type, program: Program) -> list:
    return [step for step in walk(program.steps) if isinstance(step, kind)]


def names(program: Program) -> list[str]:
    return [step.kernel.name for step in of(Launch, program)]


def body(*lines: str, arguments: str = f"%x: {K}", results: str = K) -> str:
    return function(arguments, results, *lines)


def chain(*kinds: str) -> list[str]:
    """A chain of ops with one operand."""
    values = ["%x", *(f"%{place}" for place in range(1, len(kinds))), "%r"]
    return [f"{values[i + 1]} = stablehlo.{kind} {values[i]} : {K}" for i, kind in enumerate(kinds)]


UPDATE = f"""%r = stablehlo.dynamic_update_slice %o, %u, %i, %i, %i
  : ({K}, tensor<1x1x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {K}"""
START = ["%i = stablehlo.constant dense<1> : tensor<i32>", "%u = stablehlo.constant dense<9.0> : tensor<1x1x1xf32>"]
ROWS = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : {K}
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2]
    : ({K}, tensor<f32>) -> tensor<2x3xf32>
  %w = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<2x3xf32>) -> {K}
  %r = stablehlo.divide %e, %w : {K}"""
SILENT = f"""%0 = stablehlo.reverse %x, dims = [0] : {K}
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : ({K}) -> tensor<2x4x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x4x3xf32>) -> {K}
  %r = stablehlo.negate %2 : {K}"""
PRODUCT = f"""%m = stablehlo.iota dim = 0 : tensor<4x4xf32>
  %n = stablehlo.abs %x : {K}
  %d = stablehlo.dot_general %n, %m, contracting_dims = [2] x [0] : ({K}, tensor<4x4xf32>) -> {K}
  %r = stablehlo.sine %d : {K}"""
NAMED: dict[str, tuple[list[str], str]] = {
    "one op": (chain("tanh"), "tanh_0"),
    "the first four kinds": (chain("abs", "sine", "tanh", "abs", "cosine", "sqrt"), "fused_abs_sine_tanh_cosine_0"),
    "without what is silent": ([SILENT], "fused_reverse_negate_0"),
    "nothing but silent ones": ([f"%r = stablehlo.iota dim = 1 : {K}"], "iota_0"),
    "rows": ([ROWS], "fused_exponential_reduce_divide_0"),
    "a product first": ([PRODUCT], "fused_dot_sine_0"),
    "a kernel of its own": ([*START, f"%o = stablehlo.reverse %x, dims = [0] : {K}", UPDATE], "dynamic_update_slice_0"),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_of_kernels(name: str) -> None:
    lines, wanted = NAMED[name]
    program = expect_same(body(*lines, f"return %r : {K}"), X, rtol=1e-5)
    assert names(program)[-1] == wanted


def test_names_are_distinguished_by_numbers() -> None:
    module = parse(
        body(
            f"%0 = stablehlo.sine %x : {K}",
            "%1 = stablehlo.sine %y : tensor<5xf32>",
            f"return %0, %1 : {K}, tensor<5xf32>",
            arguments=f"%x: {K}, %y: tensor<5xf32>",
            results=f"{K}, tensor<5xf32>",
        )
    )
    assert names(lower(module, TARGET)) == ["sine_0", "sine_1"]


def test_results_are_computed_where_the_caller_gets_them() -> None:
    program = expect_same(body(f"%r = stablehlo.negate %x : {K}", f"return %r : {K}"), X)
    assert of(Copy, program) == []
    assert program.arena_size == 0
    assert [value.name for value in program.values()][:2] == ["arg0", "result0"]


@pytest.mark.parametrize(
    ("lines", "copies", "launches"),
    [
        ([f"return %x, %x : {K}, {K}"], 2, 0),
        ([f"%0 = stablehlo.sine %x : {K}", f"return %0, %0 : {K}, {K}"], 1, 1),
        ([f"%0 = stablehlo.constant dense<2.5> : {K}", f"return %0, %x : {K}, {K}"], 2, 0),
        ([f"%0 = stablehlo.sine %x : {K}", f"%1 = stablehlo.cosine %0 : {K}", f"return %1, %0 : {K}, {K}"], 0, 1),
    ],
)  # fmt: skip
def test_copies_to_results(lines: list[str], copies: int, launches: int) -> None:
    """Only values that are already stored elsewhere are copied."""
    program = expect_same(body(*lines, results=f"{K}, {K}"), X, rtol=1e-6)
    assert (len(of(Copy, program)), len(of(Launch, program))) == (copies, launches)
    assert [output.storage for output in program.outputs] == [Output(0), Output(1)]


def test_a_reshape_is_a_view() -> None:
    program = expect_same(
        body(
            f"%r = stablehlo.reshape %x : ({K}) -> tensor<4x6xf32>",
            "return %r : tensor<4x6xf32>",
            results="tensor<4x6xf32>",
        ),
        X,
    )
    (copy,) = of(Copy, program)
    assert (copy.source, of(Launch, program)) == (program.inputs[0], [])
    assert program.outputs[0].shape == (4, 6)


def test_barriers_are_views() -> None:
    lines = [
        f"%0 = stablehlo.sine %x : {K}",
        f"%1 = stablehlo.optimization_barrier %0 : {K}",
        f"%r = stablehlo.abs %1 : {K}",
    ]
    assert names(expect_same(body(*lines, f"return %r : {K}"), X, rtol=1e-6)) == ["sine_0", "abs_0"]


def test_what_is_empty_is_not_launched() -> None:
    program = expect_same(
        body("%r = stablehlo.sine %x : tensor<0x3xf32>", "return %r : tensor<0x3xf32>", arguments="%x: tensor<0x3xf32>",
             results="tensor<0x3xf32>"),
        np.zeros((0, 3), np.float32),
    )  # fmt: skip
    assert program.steps == []


def test_nothing_is_a_program() -> None:
    program = lower(parse("func.func @main() { return }"), TARGET)
    verify(program)
    assert interpret(program) == []


@pytest.mark.parametrize(
    ("before", "after", "copies"),
    [
        # The argument belongs to the caller, so it is kept.
        ([f"%o = stablehlo.reshape %x : ({K}) -> {K}"], "%r", 1),
        # The value computed before is not needed any more.
        ([f"%o = stablehlo.sine %x : {K}"], "%r", 0),
        # It is needed.
        ([f"%o = stablehlo.sine %x : {K}"], "%r, %o", 1),
    ],
)
def test_updates_are_in_place_where_nothing_else_reads(before: list[str], after: str, copies: int) -> None:
    kinds = ", ".join([K] * (after.count(",") + 1))
    given = X.copy()
    text = body(*START, *before, UPDATE, f"return {after} : {kinds}", results=kinds)
    program = expect_same(text, given, rtol=1e-6)
    assert len(of(Copy, program)) == copies
    np.testing.assert_array_equal(given, X)


def test_a_loop_updates_in_place() -> None:
    text = f"""func.func @main(%x: {K}) -> {K} {{
      %n = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %u = stablehlo.constant dense<9.0> : tensor<1x1x1xf32>
      %s = stablehlo.sine %x : {K}
      %w:2 = stablehlo.while(%i = %n, %v = %s) : tensor<i32>, {K}
      cond {{
        %three = stablehlo.constant dense<3> : tensor<i32>
        %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %j = stablehlo.add %i, %one : tensor<i32>
        %t = stablehlo.dynamic_update_slice %v, %u, %i, %i, %i
          : ({K}, tensor<1x1x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {K}
        stablehlo.return %j, %t : tensor<i32>, {K}
      }}
      return %w#1 : {K}
    }}"""
    program = expect_same(text, X, rtol=1e-6)
    (loop,) = of(While, program)
    assert [step for step in walk(loop.body) if isinstance(step, Copy) and step.source.nbytes == X.nbytes] == []


def test_launches_have_their_source_locations() -> None:
    module = parse(f"""func.func @main(%x: {K}) -> {K} {{
      %0 = stablehlo.sine %x : {K} loc("model.py":3:1)
      %1 = stablehlo.abs %0 : {K} loc("model.py":4:1)
      return %1 : {K}
    }}""")
    (launch,) = of(Launch, lower(module, TARGET))
    assert [origin.describe() for origin in launch.origins] == ["model.py:3:1", "model.py:4:1"]


def test_the_graph_is_kept() -> None:
    module = parse(body(f"return %x : {K}"))
    assert lower(module, TARGET).graph is module


REFUSED = {
    "op": (
        body("%r = stablehlo.partition_id : tensor<ui32>", "return %r : tensor<ui32>", results="tensor<ui32>"),
        "stablehlo.partition_id cannot be compiled",
    ),
    "argument": (
        body("return %x : tensor<?xf32>", arguments="%x: tensor<?xf32>", results="tensor<?xf32>"),
        r"%x has type tensor<\?xf32>, expected a tensor of static shape",
    ),
    "size": (
        body(f"return %x : {K}", arguments=f"%x: {K}, %huge: tensor<1152921504606846976xf32>"),
        "arg1 has type tensor<1152921504606846976xf32>.*expected at most .*the available memory",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(CompileError, match=message):
        lower(parse(text), TARGET)


def test_values_that_do_not_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although each of them fits."""
    text = body(*START, f"%o = stablehlo.sine %x : {K}", UPDATE, f"return %r, %o : {K}, {K}", results=f"{K}, {K}")
    program = lowered(text)
    needed = program.arena_size + 2 * X.nbytes
    monkeypatch.setattr("trivium.compiler.memory.memory_limit", lambda: needed)
    lowered(text)
    monkeypatch.setattr("trivium.compiler.memory.memory_limit", lambda: needed - 1)
    with pytest.raises(
        CompileError, match=f"main needs .* {2 * X.nbytes} bytes for results, expected at most {needed - 1}"
    ):
        lowered(text)
