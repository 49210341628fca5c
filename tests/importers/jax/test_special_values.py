"""Elementwise rules against JAX at zeros of both signs, infinities, NaN, and the limits of integers."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import lax

import trivium
from tests.importers.special_values import assert_runs, numbers, pairs

pytestmark = pytest.mark.jax

UNARY = [
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erfc",
    ),
    *("exp", "exp2", "expm1", "floor", "is_finite", "log", "log1p", "logistic", "neg", "round", "rsqrt"),
    *("sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "bitwise_not", "clz", "population_count"),
]
BINARY = ["add", "atan2", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "pow", "rem", "sub"]
BINARY += ["shift_left", "shift_right_arithmetic", "shift_right_logical", "nextafter"]


def check(function, *arrays: np.ndarray) -> None:
    try:
        expected = jax.jit(function)(*arrays)
    except TypeError:
        pytest.skip("JAX has no such op for this type")
    module = trivium.from_jax(function, *arrays)
    assert_runs(module, arrays, expected)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, kind: type) -> None:
    check(getattr(lax, name), numbers(kind))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: type) -> None:
    check(getattr(lax, name), *pairs(kind))


@pytest.mark.parametrize("kind", [np.float32, np.float16, jnp.bfloat16, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_quotients_and_remainders(name: str, kind: type) -> None:
    check(getattr(jnp, name), *pairs(kind))


WITHOUT_INFINITY = ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"]


@pytest.mark.parametrize("kind", ["float8_e4m3", "float8_e5m2", *WITHOUT_INFINITY])
@pytest.mark.parametrize("function", [jnp.max, jnp.min, jnp.argmax, jnp.argmin, lax.cummax, lax.cummin])
def test_extremes_of_floats_of_8_bits(function, kind) -> None:
    """What they start with is no NaN where a type has no infinity."""
    check(function, np.array([-3.5, 0.25, 2, -0.5]).astype(kind))
