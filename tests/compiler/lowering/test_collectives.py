"""Collectives of the language as steps: devices get what the language's interpreter gives to replicas, and collectives
that no step can express are refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.interpreted import lowered
from trivium.compiler.collectives import AllReduce
from trivium.compiler.interpreter import interpret_devices
from trivium.compiler.program import Collective, Program
from trivium.ir.errors import CompileError
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse

DEVICES = 4
GROUPS = "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
FLAG = np.bool_


def arrays(dtype: type = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    if dtype is FLAG:
        return [rng.integers(0, 2, (4, 6)).astype(np.bool_) for _ in range(DEVICES)]
    return [rng.integers(-9, 10, (4, 6)).astype(dtype) for _ in range(DEVICES)]


def region(body: str, kind: str = "f32") -> str:
    return f"""({{
      ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):
        {body}
    }})"""


def by(op: str, kind: str = "f32") -> str:
    """A computation of one op."""
    return region(f"%c = stablehlo.{op} %a, %b : tensor<{kind}> stablehlo.return %c : tensor<{kind}>", kind)


def module(*lines: str, result: str = "tensor<4x6xf32>", kind: str = "f32") -> str:
    return "\n".join([
        f"func.func @main(%x: tensor<4x6x{kind}>) -> ({result}) {{", *lines, f"return %r : {result}", "}",
    ])  # fmt: skip


def reduce(body: str, kind: str = "f32", groups: str = GROUPS) -> str:
    shape = f"tensor<4x6x{kind}>"
    return f'%r = "stablehlo.all_reduce"(%x) {body} {{{groups}}} : ({shape}) -> {shape}'


def agree(text: str, given: list[np.ndarray]) -> Program:
    """Each device gets the same as its replica."""
    program = lowered(text)
    expected = run_parallel(parse(text), [["main"]] * DEVICES, [[array] for array in given])
    for found, wanted in zip(interpret_devices(program, [[array] for array in given]), expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(one, other)
    return program


def collectives(program: Program) -> list[Collective]:
    return [step for step in program.steps if isinstance(step, Collective)]


@pytest.mark.parametrize(
    ("op", "dtype", "kind"),
    [
        *((op, np.float32, "f32") for op in ("add", "multiply", "maximum", "minimum")),
        *((op, np.int32, "i32") for op in ("add", "multiply", "maximum", "and", "or", "xor")),
        *((op, FLAG, "i1") for op in ("and", "or", "xor", "add", "maximum", "minimum", "multiply")),
        ("add", ml_dtypes.bfloat16, "bf16"), ("maximum", np.uint8, "ui8"), ("add", np.complex64, "complex<f32>"),
    ],
)  # fmt: skip
def test_combiners(op: str, dtype: type, kind: str) -> None:
    given = (
        arrays(dtype) if np.dtype(dtype).kind != "u" else [np.abs(array).astype(dtype) for array in arrays(np.int32)]
    )
    (step,) = collectives(agree(module(reduce(by(op, kind), kind), result=f"tensor<4x6x{kind}>", kind=kind), given))
    assert step.kind == AllReduce(op)
    assert step.groups == ((0, 2), (1, 3))


OTHERS = {
    "gather": (
        f'%r = "stablehlo.all_gather"(%x) {{{GROUPS}, all_gather_dim = 0 : i64}}'
        " : (tensor<4x6xf32>) -> tensor<8x6xf32>",
        "tensor<8x6xf32>",
    ),
    "scatter": (
        f'%r = "stablehlo.reduce_scatter"(%x) {by("add")} {{{GROUPS}, scatter_dimension = 1 : i64}}'
        " : (tensor<4x6xf32>) -> tensor<4x3xf32>",
        "tensor<4x3xf32>",
    ),
    "exchange": (
        f'%r = "stablehlo.all_to_all"(%x) {{{GROUPS}, split_dimension = 1 : i64, concat_dimension = 0 : i64,'
        " split_count = 2 : i64} : (tensor<4x6xf32>) -> tensor<8x3xf32>",
        "tensor<8x3xf32>",
    ),
    "permute": (
        '%r = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 3], [3, 1]]> : tensor<2x2xi64>}'
        " : (tensor<4x6xf32>) -> tensor<4x6xf32>",
        "tensor<4x6xf32>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds(name: str) -> None:
    line, result = OTHERS[name]
    assert len(collectives(agree(module(line, result=result), arrays()))) == 1


def test_groups_of_different_sizes() -> None:
    groups = "replica_groups = dense<[[0, 2, 3], [1, -1, -1]]> : tensor<2x3xi64>"
    (step,) = collectives(agree(module(reduce(by("add"), groups=groups)), arrays()))
    assert step.groups == ((0, 2, 3), (1,))


def test_each_operand_has_a_step_of_its_own() -> None:
    text = module(
        "%n = stablehlo.negate %x : tensor<4x6xf32>",
        f'%0:2 = "stablehlo.all_reduce"(%x, %n) {by("maximum")} {{{GROUPS}}}'
        " : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)",
        "%r = stablehlo.subtract %0#0, %0#1 : tensor<4x6xf32>",
    )
    assert len(collectives(agree(text, arrays()))) == 2


def test_a_reshaped_operand_is_exchanged_in_its_new_shape() -> None:
    """It is not copied: the step reads the argument, in the argument's shape."""
    text = module(
        "%flat = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<3x8xf32>",
        f'%r = "stablehlo.all_gather"(%flat) {{{GROUPS}, all_gather_dim = 1 : i64}}'
        " : (tensor<3x8xf32>) -> tensor<3x16xf32>",
        result="tensor<3x16xf32>",
    )
    (step,) = collectives(agree(text, arrays()))
    assert (step.source.shape, step.shape) == ((4, 6), (3, 8))


def test_arguments_stay_as_they_are() -> None:
    """The result has separate storage, although no other op reads the argument."""
    given = arrays()
    kept = [array.copy() for array in given]
    agree(module(reduce(by("add"))), given)
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)


RETURN = "stablehlo.return %c : tensor<f32>"
REFUSED = {
    "another op": "%c = stablehlo.subtract %a, %b : tensor<f32> " + RETURN,
    "two ops": "%0 = stablehlo.add %a, %b : tensor<f32> %c = stablehlo.negate %0 : tensor<f32> " + RETURN,
    "no op": "stablehlo.return %a : tensor<f32>",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_computations_are_refused(name: str) -> None:
    with pytest.raises(
        CompileError, match="all_reduce combines by an arbitrary computation, expected one op: add, multiply"
    ):
        lowered(module(reduce(region(REFUSED[name]))))


def test_the_order_of_the_operands_does_not_matter() -> None:
    agree(module(reduce(region("%c = stablehlo.add %b, %a : tensor<f32> " + RETURN))), arrays())


def test_one_operand_twice_is_another_computation() -> None:
    with pytest.raises(CompileError, match="combines by an arbitrary computation"):
        lowered(module(reduce(region("%c = stablehlo.add %a, %a : tensor<f32> " + RETURN))))


def test_sums_in_a_wider_type_are_refused() -> None:
    line = f'%r = "stablehlo.all_reduce"(%x) {by("add")} {{{GROUPS}}} : (tensor<4x6xbf16>) -> tensor<4x6xf32>'
    with pytest.raises(CompileError, match=r"all_reduce: arg0: 4x6xbf16 at input 0 and result0.* differ in type"):
        lowered(module(line, kind="bf16"))


def test_empty_groups_are_refused() -> None:
    with pytest.raises(CompileError, match="all_reduce lists no groups, expected groups of all devices"):
        lowered(module(reduce(by("add"), groups="replica_groups = dense<> : tensor<0x0xi64>")))
