"""The expansions of `chlo.erfc` and `chlo.erf_inv` become these ops again, and JAX's normal distribution one
`erfc`; what differs from them in anything does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special

from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.recognize import Recognize
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Erfc, ErfInv, Negate
from trivium.ir.text import parse

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.jax


def expanded(dtype: str, function: Callable = jax.lax.erfc) -> str:
    """Returns `function` as StableHLO's own pass writes it out."""
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    x = jax.ShapeDtypeStruct((3, 8), dtype)
    module = jax.jit(function).trace(x).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    with module.context:
        stablehlo.register_stablehlo_passes()
        manager = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")
        manager.run(module.operation)
    assert "chlo" not in str(module)
    return str(module)


def recognized(text: str, kind: type[Operation] = Erfc) -> tuple[Module, int]:
    """Returns the program after the pass, and its ops of a kind."""
    after = run_passes(parse(text), (Recognize(),), verify=True)
    return after, sum(isinstance(op, kind) for op in after.walk())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_expansion_is_recognized(dtype: str) -> None:
    text = expanded(dtype)
    after, count = recognized(text)
    assert count == 1
    x = np.linspace(-11, 11, 24).reshape(3, 8).astype(np.dtype(jax.numpy.dtype(dtype)))
    (before,), (found,) = evaluate(parse(text), x), evaluate(after, x)
    exact = scipy.special.erfc(x.astype(np.float64))
    kind = jax.numpy.finfo(dtype)
    relative, absolute = 2e-6 + 2 * float(kind.eps), float(kind.smallest_subnormal) + 2.0**-126
    for result in (before, found):
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=relative, atol=absolute)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.564189494", "0.564189553"),
        ("dense<2.000000e+00>", "dense<2.500000e+00>"),
        ("compare LT", "compare LE"),
        ("stablehlo.subtract", "stablehlo.add"),
        ("stablehlo.exponential", "stablehlo.tanh"),
    ],
)
def test_anything_else_is_left_alone(old: str, new: str) -> None:
    text = expanded("float32")
    assert old in text
    for number in range(text.count(old)):
        pieces = text.split(old)
        changed = old.join(pieces[: number + 1]) + new + old.join(pieces[number + 1 :])
        assert recognized(changed)[1] == 0


def test_other_arguments_are_left_alone() -> None:
    """Every op that reads the argument must read the same one."""
    text = expanded("float32").replace("(%arg0: tensor<3x8xf32>)", "(%arg0: tensor<3x8xf32>, %arg1: tensor<3x8xf32>)")
    assert recognized(text)[1] == 1
    head, *pieces = text.split("%arg0, ")
    for number in range(1, len(pieces)):
        changed = [*pieces]
        mixed = "%arg0, ".join([head, *changed[:number]]) + "%arg1, " + "%arg0, ".join(changed[number:])
        assert recognized(mixed)[1] == 0


def test_not_in_f64() -> None:
    """Its expansion is another one, and its coefficients are more precise."""
    with jax.enable_x64(True):
        text = expanded("float64")
    assert recognized(text)[1] == 0


INVERSE_CHANGES = [
    ("2.81022636E-8", "2.81022672E-8"),
    ("dense<5.000000e+00>", "dense<5.500000e+00>"),
    ("compare LT", "compare LE"),
    ("compare EQ", "compare NE"),
    ("stablehlo.log_plus_one", "stablehlo.log"),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_inverse_is_recognized(dtype: str) -> None:
    text = expanded(dtype, jax.lax.erf_inv)
    after, count = recognized(text, ErfInv)
    assert count == 1
    x = np.linspace(-1, 1, 24).reshape(3, 8).astype(np.dtype(jax.numpy.dtype(dtype)))
    (before,), (found,) = evaluate(parse(text), x), evaluate(after, x)
    exact = scipy.special.erfinv(x.astype(np.float64))
    for result in (before, found):
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=2e-6 + 2 * float(jax.numpy.finfo(dtype).eps))


@pytest.mark.parametrize(("old", "new"), INVERSE_CHANGES)
def test_anything_but_the_inverse_is_left_alone(old: str, new: str) -> None:
    text = expanded("float32", jax.lax.erf_inv)
    assert old in text
    assert recognized(text.replace(old, new), ErfInv)[1] == 0


DISTRIBUTION = """
func.func @main(%x: tensor<3x8xf32>, %other: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %c = stablehlo.constant dense<0.707106769> : tensor<3x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<3x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3x8xf32>
  %two = stablehlo.constant dense<2.0> : tensor<3x8xf32>
  %a = stablehlo.abs %x : tensor<3x8xf32>
  %near = stablehlo.compare LT, %a, %c : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xi1>
  %erf = chlo.erf %x : tensor<3x8xf32> -> tensor<3x8xf32>
  %sum = stablehlo.add %one, %erf : tensor<3x8xf32>
  %right = stablehlo.compare GT, %x, %zero : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xi1>
  %tail = chlo.erfc %a : tensor<3x8xf32> -> tensor<3x8xf32>
  %rest = stablehlo.subtract %two, %tail : tensor<3x8xf32>
  %far = stablehlo.select %right, %rest, %tail : tensor<3x8xi1>, tensor<3x8xf32>
  %found = stablehlo.select %near, %sum, %far : tensor<3x8xi1>, tensor<3x8xf32>
  return %found : tensor<3x8xf32>
}
"""
"""jax.scipy.special.ndtr, twice"""


def distributions(text: str) -> tuple[Module, int]:
    """Returns the program after the pass, and how often it computes the complement of a negative number."""
    after, _ = recognized(text)
    complements = [op for op in after.walk() if isinstance(op, Erfc)]
    return after, sum(isinstance(op.operand.defining_op, Negate) for op in complements)


def test_the_normal_distribution_is_one_op() -> None:
    after, count = distributions(DISTRIBUTION)
    assert count == 1
    x = np.linspace(-9, 9, 24).reshape(3, 8).astype(np.float32)
    (before,), (found,) = evaluate(parse(DISTRIBUTION), x, x), evaluate(after, x, x)
    for result in (before, found):
        np.testing.assert_allclose(result, scipy.special.erfc(-x.astype(np.float64)), rtol=1e-6)


def test_jax_writes_it_so() -> None:
    traced = jax.jit(jax.scipy.stats.norm.cdf).trace(jax.ShapeDtypeStruct((3, 8), "float32"))
    assert distributions(traced.lower(lowering_platforms=("cpu",)).as_text())[1] == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dense<0.707106769>", "dense<0.5>"),
        ("dense<2.0>", "dense<2.5>"),
        ("dense<1.0>", "dense<1.5>"),
        ("dense<0.0>", "dense<-0.0>"),
        ("LT, %a", "GT, %a"),
        ("GT, %x", "LT, %x"),
        ("erfc %a", "erfc %x"),
        ("erf %x", "erf %other"),
        ("abs %x", "abs %other"),
        ("GT, %x", "GT, %other"),
        ("%two, %tail", "%two, %sum"),
    ],
)
def test_other_distributions_are_left_alone(old: str, new: str) -> None:
    assert old in DISTRIBUTION
    assert distributions(DISTRIBUTION.replace(old, new))[1] == 0
