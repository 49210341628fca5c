"""Elementwise rules against PyTorch at zeros of both signs, infinities, NaN, and the limits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.importers.special_values import assert_runs, numbers, pairs
from trivium.importers.pytorch import import_graph
from trivium.importers.pytorch.types import to_array, to_tensor

pytestmark = pytest.mark.torch

aten = torch.ops.aten
FLOATS = ["float64", "float32", "float16", "bfloat16"]
INTEGERS = ["int64", "int8", "uint8"]
# Excluded: `maximum` and similar ops on zeros of both signs (PyTorch's result depends on the lane of a vector), `gelu`
# of -0 (on the library that computes it), remainders of quotients that overflow (NaN in vectors, but not in scalar
# code).
UNARY = [
    *(
        "abs",
        "acos",
        "acosh",
        "angle",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "digamma",
        "elu",
        "erf",
    ),
    *("erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "hardsigmoid", "hardswish", "isfinite", "isinf"),
    *("isnan", "leaky_relu", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "relu", "relu6", "round"),
    *("rsqrt", "sgn", "sigmoid", "sign", "signbit", "silu", "sin", "sinh", "softplus", "sqrt", "square", "tan", "tanh"),
    *("trunc", "logical_not", "hardtanh"),
]
BINARY = [
    *("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "atan2"),
    *("pow", "hypot", "logical_and", "logical_or", "logical_xor"),
]
NUMBERS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, 5.3, 0.1]


def overload(name: str, *kinds: str) -> Any:
    packet = getattr(aten, name)
    return getattr(packet, next(kind for kind in (*kinds, "default") if kind in packet.overloads()))


def check(op: Any, *arguments: Any) -> None:
    """Runs an op on tensors and numbers, interpreted and compiled, and compares with PyTorch."""
    try:
        expected = op(*arguments)
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch has no such op for this type")
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(f"x{i}") if isinstance(x, torch.Tensor) else x for i, x in enumerate(arguments)]
    graph.output((graph.call_function(op, tuple(nodes)),))
    tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
    module = import_graph(torch.fx.GraphModule(torch.nn.Module(), graph), tensors).module
    arrays = [to_array(tensor) for tensor in tensors]
    assert_runs(module, arrays, to_array(expected))


def tensor(array: np.ndarray) -> Any:
    return to_tensor(array.copy())


def dtype_of(name: str) -> np.dtype:
    return to_array(torch.empty(0, dtype=getattr(torch, name))).dtype


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, kind: str) -> None:
    check(overload(name), tensor(numbers(dtype_of(kind))))


@pytest.mark.parametrize("kind", ["float32", "float16", "int64"])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: str) -> None:
    check(overload(name, "Tensor", "Tensor_Tensor"), *map(tensor, pairs(dtype_of(kind))))


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_quotients_and_remainders(name: str, kind: str) -> None:
    check(overload(name, "Tensor"), *map(tensor, pairs(dtype_of(kind))))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "mul", "div", "add", "clamp_min", "clamp_max", "pow"])
def test_numbers_as_operands(name: str, kind: str) -> None:
    for number in NUMBERS:
        check(overload(name, "Scalar", "Tensor_Scalar"), tensor(numbers(dtype_of(kind))), number)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("kind", FLOATS)
def test_small_integers_are_the_lowest_bits(kind: str, target: str) -> None:
    near = [300, -1, -1.9, -200, 127.6, 1e4, -70000, 2.0**31 - 129, -(2.0**31), np.nan, np.inf, -np.inf]
    far = [2.0**31 + 517, -(2.0**31) - 517, 2.0**40 + 5, 1e19, -1e19]
    for given in (near, far if kind == "float64" else far[3:]):
        check(aten.to.dtype, torch.tensor(given, dtype=getattr(torch, kind)), getattr(torch, target))


@pytest.mark.parametrize("kind", INTEGERS)
def test_common_divisors_of_all_integers(kind: str) -> None:
    """Also of unsigned ones, which have no absolute value."""
    x, y = ([0, 12, 120, 18, 7, 0], [5, 18, 15, 0, 7, 0])
    check(aten.gcd.default, *(torch.tensor(each, dtype=getattr(torch, kind)) for each in (x, y)))


def test_the_digamma_of_zero() -> None:
    check(aten.digamma.default, torch.tensor([0.0, -0.0, -1.0, -2.0], dtype=torch.float64))


def test_a_number_is_not_rounded_to_the_narrow_type_of_its_tensor() -> None:
    x = torch.linspace(-3, 3, 1000).to(torch.bfloat16)
    check(aten.mul.Tensor, x, 0.1)
    check(aten.div.Tensor, x, 0.3)
    check(aten.floor_divide.default, x, 0.1)
