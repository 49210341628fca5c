"""Random numbers: their distributions within six standard errors, their seeds, and what a program repeats."""

import math
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.checks import node

pytestmark = pytest.mark.onnx

COUNT = 40_000
SIZE = [200, 200]
FLOAT, FLOAT16, DOUBLE, BFLOAT16, INT32, INT64 = 1, 10, 11, 16, 6, 7
KINDS = [FLOAT, FLOAT16, DOUBLE, BFLOAT16]


def run(op: str, *inputs: np.ndarray, outputs: int = 1, opset: int = 21, **attributes: Any) -> list[np.ndarray]:
    module = trivium.from_onnx(node(op, *inputs, outputs=outputs, opset=opset, fixed=False, **attributes))
    module.verify()
    executable = trivium.compile(module)
    results = executable(*inputs)
    for again, result in zip(executable(*inputs), results, strict=True):
        np.testing.assert_array_equal(again, result)
    return list(results)


def assert_near(values: np.ndarray, mean: float, deviation: float) -> None:
    error = deviation / math.sqrt(values.size)
    assert abs(values.astype(np.float64).mean() - mean) < 6 * error


def assert_uniform(x: np.ndarray, low: float, high: float, step: float) -> None:
    assert x.min() >= low
    assert x.max() <= high
    wide = (x.astype(np.float64) - low) / (high - low)
    assert_near(wide + step / 2, 0.5, math.sqrt(1 / 12))
    assert_near((wide + step / 2 - 0.5) ** 2, 1 / 12, math.sqrt(1 / 180))
    assert_near(wide[:, 1:] * wide[:, :-1] + step / 2, 0.25, math.sqrt(7 / 144))


def assert_normal(x: np.ndarray, mean: float, scale: float) -> None:
    wide = (x.astype(np.float64) - mean) / scale
    assert_near(wide, 0, 1)
    assert_near(wide**2, 1, math.sqrt(2))
    assert_near(wide**3, 0, math.sqrt(15))
    assert_near(wide**4, 3, math.sqrt(96))


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_numbers(kind: int) -> None:
    step = {FLOAT16: 2**-11, BFLOAT16: 2**-8}.get(kind, 0)
    (x,) = run("RandomUniform", shape=SIZE, dtype=kind, seed=3.0)
    assert x.dtype == onnx.helper.tensor_dtype_to_np_dtype(kind)
    assert_uniform(x, 0, 1, step)
    assert x.max() < 1
    (x,) = run("RandomUniformLike", np.zeros(SIZE, np.float32), dtype=kind, low=-2.0, high=6.0)
    assert_uniform(x, -2, 6, step)


@pytest.mark.parametrize("kind", KINDS)
def test_normal_numbers(kind: int) -> None:
    (x,) = run("RandomNormal", shape=SIZE, dtype=kind)
    assert x.dtype == onnx.helper.tensor_dtype_to_np_dtype(kind)
    assert np.isfinite(x.astype(np.float64)).all()
    assert_normal(x, 0, 1)
    (x,) = run("RandomNormalLike", np.zeros(SIZE, np.float64), dtype=kind, mean=3.0, scale=0.5, seed=1.0)
    assert_normal(x, 3, 0.5)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_bernoulli(kind: type) -> None:
    for p in (0.0, 0.2, 0.9, 1.0):
        (x,) = run("Bernoulli", np.full(SIZE, p, kind), dtype=INT32, seed=5.0)
        assert x.dtype == np.int32
        assert set(np.unique(x)) <= {0, 1}
        p = float(kind(p))
        assert_near(x, p, math.sqrt(p * (1 - p)) + 1e-12)


def test_multinomial() -> None:
    shares = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        logits = np.log(shares) + np.array([[3.0], [-200.0]], np.float32)
    (x,) = run("Multinomial", logits, sample_size=COUNT, dtype=INT64, seed=2.0)
    assert (x.shape, x.dtype) == ((2, COUNT), np.int64)
    for row, expected in zip(x, shares, strict=True):
        for index, share in enumerate(expected):
            assert_near(row == index, share, math.sqrt(share * (1 - share)) + 1e-12)


@pytest.mark.parametrize("ratio", [None, 0.0, 0.3, 1.0])
def test_dropout_in_training(ratio: float | None) -> None:
    x = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    share = 0.5 if ratio is None else ratio
    y, kept = run("Dropout", x, np.float32(share), np.array(True), outputs=2)
    assert kept.dtype == bool
    assert_near(~kept, share, math.sqrt(share * (1 - share)) + 1e-12)
    if ratio != 1.0:
        np.testing.assert_allclose(y[kept], x[kept] / (1 - share), rtol=1e-6)
    assert not y[~kept].any()
    same, all_kept = run("Dropout", x, np.float32(share), np.array(False), outputs=2)
    np.testing.assert_array_equal(same, x)
    assert all_kept.all()


def test_streams() -> None:
    """Nodes without a seed draw different numbers; those of the same seed, the same."""
    text = """<ir_version: 9, opset_import: ["" : 17]> g ()
        => (float[9] a, float[9] b, float[9] c, float[9] d, float[9] e) {
            a = RandomUniform<shape = [9]>() b = RandomUniform<shape = [9]>()
            c = RandomUniform<shape = [9], seed = 4.0>() d = RandomUniform<shape = [9], seed = 4.0>()
            e = RandomUniform<shape = [9], seed = 4.5>()
        }"""
    a, b, c, d, e = trivium.compile(trivium.from_onnx(onnx.parser.parse_model(text)))()
    np.testing.assert_array_equal(c, d)
    different = [a, b, c, e]
    assert len({x.tobytes() for x in different}) == 4
    assert len(np.unique(np.concatenate(different))) == 36


def test_what_is_refused() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = BODY }"""

    def refuse(body: str, message: str) -> None:
        with pytest.raises(trivium.UnsupportedOpError, match=message):
            trivium.from_onnx(onnx.parser.parse_model(text.replace("BODY", body)))

    refuse("RandomNormalLike(x)", r"input has type tensor<\?xf32>, expected a shape that is known while importing")
    refuse("RandomUniform<shape = [2], dtype = 6>()", "dtype has i32, expected float, double, float16 or bfloat16")


LOOPS = """<ir_version: 9, opset_import: ["" : 17]> g (int64 n, bool p, float[3, 5] rows)
    => (float[n, 3, 9] a, float[3, 9] b, float[9] c, float[9] d) {
        a = Loop (n, p) <body = once (int64 i, bool go) => (bool on, float[3, 9] made) {
            made = Scan <num_scan_inputs = 1, body = inner (float[5] row) => (float[9] u) {
                u = RandomUniform<shape = [9], seed = 4.0>()
            }> (rows)
            on = Identity(go)
        }>
        b = Scan <num_scan_inputs = 1, body = step (float[5] row) => (float[9] v) {
            v = RandomUniform<shape = [9]>()
        }> (rows)
        c = If (p) <then_branch = yes () => (float[9] w) { w = RandomUniform<shape = [9]>() },
                    else_branch = no () => (float[9] w) { w = RandomUniform<shape = [9]>() }>
        d = RandomUniform<shape = [9]>()
    }"""


def test_each_iteration_draws_its_own_numbers() -> None:
    module = trivium.from_onnx(onnx.parser.parse_model(LOOPS))
    module.verify()
    rows = np.zeros((3, 5), np.float32)
    drawn = []
    for possible in (True, False):
        arguments = (np.int64(4 * possible), np.array(possible), rows)
        results = trivium.compile(module)(*arguments)
        for result, expected in zip(results, trivium.evaluate(module, *arguments), strict=True):
            np.testing.assert_array_equal(result, expected)
        drawn.append(results)
    (a, b, c, d), (none, same, other, last) = drawn
    assert (a.shape, none.shape) == ((4, 3, 9), (0, 3, 9))
    everything = np.concatenate([x.reshape(-1) for x in (a, b, c, other, d)])
    assert len(np.unique(everything)) == everything.size
    assert_near(everything, 0.5, math.sqrt(1 / 12))
    np.testing.assert_array_equal(same, b)
    np.testing.assert_array_equal(last, d)
