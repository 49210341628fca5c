"""Conversions against ONNX's reference evaluator, and against the tables of its specification where those specify
more."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import trivium

pytestmark = pytest.mark.onnx

OPSET = 25
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf]
NUMBERS = [
    *SPECIAL,
    0.3,
    1.25,
    -2.5,
    239,
    240,
    247,
    248,
    249,
    448,
    463,
    464,
    465,
    -481,
    57344,
    61440,
    -65504,
    1e-3,
    2e-5,
]
FLOAT8 = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
RUNS = [trivium.evaluate, lambda module, *inputs: trivium.compile(module)(*inputs)]


def dtype_of(name: str) -> np.dtype:
    return helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))


def model(op: str, inputs: list[np.ndarray], **attributes: Any) -> Any:
    names = [f"x{index}" for index in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)


def check(op: str, inputs: list[np.ndarray], expected: np.ndarray | None = None, **attributes: Any) -> None:
    """Compares, interpreted and compiled, with ONNX's reference evaluator or with the expected result."""
    made = model(op, inputs, **attributes)
    if expected is None:
        with np.errstate(all="ignore"):
            feeds = {f"x{index}": array for index, array in enumerate(inputs)}
            expected = np.asarray(ReferenceEvaluator(made).run(None, feeds)[0])
    module = trivium.from_onnx(made)
    module.verify()
    for run in RUNS:
        (got,) = run(module, *inputs)
        assert got.dtype == expected.dtype
        # The sign of zero is compared, that of NaN is not.
        wide, wanted = np.asarray(got).astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(wide, wanted)
        np.testing.assert_array_equal(np.signbit(wide[wide == 0]), np.signbit(wanted[wide == 0]))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("given", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT32", "FLOAT8E5M2"])
@pytest.mark.parametrize("target", FLOAT8)
def test_float8(given: str, target: str, saturate: int) -> None:
    numbers = [number for number in NUMBERS if given != "INT32" or np.isfinite(number)]
    with np.errstate(all="ignore"):
        x = np.array(numbers).astype(np.float32).astype(dtype_of(given))
    check("Cast", [x], to=getattr(TensorProto, target), saturate=saturate)
    check("CastLike", [x, np.zeros(1, dtype_of(target))], saturate=saturate)


def test_float8_saturates_by_default() -> None:
    x = np.array([1e6, -np.inf], np.float32)
    limits = np.array([448, -448], ml_dtypes.float8_e4m3fn)
    check("Cast", [x], limits, to=TensorProto.FLOAT8E4M3FN)
    check("CastLike", [x, limits], limits)


@pytest.mark.parametrize("given", ["FLOAT", "FLOAT16", "INT8", "INT32"])
@pytest.mark.parametrize("target", ["INT4", "UINT4", "INT2", "UINT2"])
def test_narrow_integers_wrap(given: str, target: str) -> None:
    x = (np.arange(-40, 40) * (1 if given.startswith("INT") else 0.45)).astype(dtype_of(given))
    check("Cast", [x], to=getattr(TensorProto, target))
    check("CastLike", [x, np.zeros(1, dtype_of(target))])


LEAST, MOST = 2.0**-127, 2.0**127
UP = [(0, LEAST), (np.nan, np.nan), (np.inf, MOST), (1.5 * MOST, MOST), (LEAST / 4, LEAST), (LEAST, LEAST)]
UP += [(1.5 * LEAST, 2 * LEAST), (2 * LEAST, 2 * LEAST), (1, 1), (1.01, 2), (5, 8), (0.124, 0.125)]
NEAREST = [(0, np.nan), (np.nan, np.nan), (np.inf, np.nan), (1.5 * MOST, np.nan), (1.4 * MOST, MOST), (1, 1)]
NEAREST += [(LEAST / 2, np.nan), (1.4 * LEAST, LEAST), (1.5 * LEAST, 2 * LEAST), (1.49, 1), (1.5, 2), (5, 4), (6, 8)]
DOWN = [(0, LEAST), (np.inf, MOST), (1.9 * MOST, MOST), (1.99 * LEAST, LEAST), (1.99, 1), (7.9, 4)]


@pytest.mark.parametrize(
    ("pairs", "attributes"),
    [
        (UP, {}),
        (UP, {"saturate": 1, "round_mode": "up"}),
        (NEAREST, {"saturate": 0, "round_mode": "nearest"}),
        (DOWN, {"round_mode": "down"}),
    ],
    ids=["default", "up", "nearest", "down"],
)
def test_powers_of_two(pairs: list[tuple[float, float]], attributes: dict[str, Any]) -> None:
    """The specification's table, and rounding between its rows; its reference evaluator does not follow either
    everywhere."""
    given, wanted = (np.array(column, np.float32) for column in zip(*pairs, strict=True))
    expected = wanted.astype(ml_dtypes.float8_e8m0fnu)
    check("Cast", [given], expected, to=TensorProto.FLOAT8E8M0, **attributes)
    check("CastLike", [given, expected], expected, **attributes)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two_as_the_reference_has_them(mode: str) -> None:
    x = np.exp(np.random.default_rng(0).uniform(-80, 80, 500)).astype(np.float32)
    for saturate in (0, 1):
        check("Cast", [x], to=TensorProto.FLOAT8E8M0, round_mode=mode, saturate=saturate)


def test_an_unknown_round_mode_is_refused() -> None:
    with pytest.raises(trivium.UnsupportedOpError, match="round_mode has sideways, expected one of up, down, nearest"):
        trivium.from_onnx(model("Cast", [np.ones(2, np.float32)], to=TensorProto.FLOAT8E8M0, round_mode="sideways"))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(kind: type, direction: str) -> None:
    limits = np.iinfo(kind)
    numbers = [limits.min, limits.max, 0, 1, 77, limits.max // 3, *([-1, -7] if limits.min else [])]
    amounts = [0, 1, 3, limits.bits - 1, limits.bits, limits.bits + 1, 120, *([-1, limits.min] if limits.min else [])]
    x, y = np.array(list(itertools.product(numbers, amounts)), dtype=kind).T.copy()
    check("BitShift", [x, y], direction=direction)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "GlobalAveragePool", "ReduceL2", "Softmax"])
def test_sums_of_narrow_floats_are_rounded_once(op: str) -> None:
    """A running sum of 16 bits would stop at 2048 (f16) or 256 (bf16)."""
    for kind in (np.float16, ml_dtypes.bfloat16):
        x = np.full((1, 1, 5000), 0.5).astype(kind)
        made = model(op, [x])
        (got,) = trivium.evaluate(trivium.from_onnx(made), x)
        wide = ReferenceEvaluator(model(op, [x.astype(np.float32)])).run(None, {"x0": x.astype(np.float32)})[0]
        np.testing.assert_allclose(np.asarray(got).astype(np.float32), wide, rtol=1e-2)
