"""Sine, cosine and tangent in f64, and the reduction of large angles in both types."""

from __future__ import annotations

import llvmlite.ir as ll
import mpmath
import numpy as np
import pytest

from tests.backends.llvm.math.measuring import EVERYTHING, NAN, TYPES, compiled, distance, expect_limits, worst
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F64, Code
from trivium.backends.llvm.math import trigonometric

FUNCTIONS = {
    # the exact function, and its values at 0, -0, inf, -inf
    "sine": (mpmath.sin, (0, -0.0, NAN, NAN)),
    "cosine": (mpmath.cos, (1, 1, NAN, NAN)),
    "tan": (mpmath.tan, (0, -0.0, NAN, NAN)),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_all_exponents(op: str) -> None:
    assert worst(op, "f64", FUNCTIONS[op][0], EVERYTHING, bits=1200) <= 4.0


@pytest.mark.parametrize("op", FUNCTIONS)
def test_limits(op: str) -> None:
    expect_limits(op, "f64", FUNCTIONS[op][1])


@pytest.mark.parametrize(("op", "reference"), [("sine", np.sin), ("cosine", np.cos), ("tan", np.tan)])
def test_huge_angles(op: str, reference: np.ufunc) -> None:
    x = np.array([1e10, 1e20, 3e38, -1e15, 12345.678, 1.0, 1e-3, 5e13] * 3, np.float32)
    np.testing.assert_allclose(compiled(op, "f32", x), reference(x.astype(np.float64)), rtol=5e-7)


def far_from_all(op: str, name: str, x: np.ndarray) -> float:
    with mpmath.workprec(1400):
        pairs = zip(x.tolist(), compiled(op, name, x).tolist(), strict=True)
        return max(distance(value, FUNCTIONS[op][0](mpmath.mpf(angle)), TYPES[name]) for angle, value in pairs)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_angles_next_to_multiples_of_a_quarter_turn(op: str) -> None:
    """If a result is close to 0, most digits of the reduced angle must be right. The last number is the one of f64 that
    is closest to a multiple."""
    x = np.concatenate([np.arange(1, 300) * (np.pi / 2), 2.0 ** np.arange(10, 60) * np.pi])
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf), [6381956970095103 * 2.0**797]])
    assert far_from_all(op, "f64", np.concatenate([x, -x])) <= 4.0


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_from_one_reduction_to_the_other(op: str, name: str) -> None:
    """Angles around the largest that is reduced by parts. The lanes of a vector contain both kinds."""
    limit = 2.0**19
    around = limit + np.concatenate([np.linspace(-8, 8, 64), np.linspace(0, 1e6, 37)])
    mixed = np.stack([around, np.linspace(-3, 3, len(around)), -around * 2.0**40], axis=1).ravel()
    mixed = mixed.astype(TYPES[name])
    assert far_from_all(op, name, mixed) <= (2.0 if name == "f32" else 4.0)


def test_the_lanes_of_a_vector_do_not_disturb_each_other() -> None:
    """A huge angle, or one that has no sine, together with others."""
    x = np.linspace(-3, 3, 16)
    alone = compiled("sine", "f64", x)
    for rare in (1e300, np.inf, np.nan, -1e22):
        beside = x.copy()
        beside[::5] = rare
        got = compiled("sine", "f64", beside)
        kept = np.arange(16) % 5 != 0
        np.testing.assert_array_equal(got[kept], alone[kept])


def test_squares_add_up_to_one() -> None:
    x = np.random.default_rng(0).uniform(-1e6, 1e6, 5000)
    total = compiled("sine", "f64", x) ** 2 + compiled("cosine", "f64", x) ** 2
    np.testing.assert_allclose(total, 1, rtol=0, atol=4 * np.finfo(np.float64).eps)


def test_the_lanes_with_large_angles_are_reduced_by_one_function_of_the_module() -> None:
    module, vector = ll.Module(), ll.VectorType(F64, 8)
    function = ll.Function(module, ll.FunctionType(vector, [vector]), "f")
    code = Code(ll.IRBuilder(function.append_basic_block()), host())
    x = function.args[0]
    for _ in range(3):
        x = trigonometric.cos(code, trigonometric.sin(code, x))
    code.builder.ret(x)
    assert str(module).count('@"trivium.reduce_8_angles_to_3"') == 1 + 6
    assert str(module).count('@"trivium.reduce_angle"') == 1 + 8
