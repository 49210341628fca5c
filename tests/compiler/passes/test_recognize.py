"""The expansion of `chlo.erfc` becomes that op again; what differs from it in anything does not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.recognize import Recognize
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Erfc
from trivium.ir.text import parse

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.jax


def expanded(dtype: str) -> str:
    """Returns `erfc` as StableHLO's own pass writes it out."""
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    x = jax.ShapeDtypeStruct((3, 8), dtype)
    module = jax.jit(jax.lax.erfc).trace(x).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    with module.context:
        stablehlo.register_stablehlo_passes()
        manager = passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")
        manager.run(module.operation)
    assert "chlo" not in str(module)
    return str(module)


def recognized(text: str) -> tuple[Module, int]:
    """Returns the program after the pass, and its ops of the kind."""
    after = run_passes(parse(text), (Recognize(),), verify=True)
    return after, sum(isinstance(op, Erfc) for op in after.walk())


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
