"""Fourier transforms and filters, against ONNX's reference evaluator: lengths are constants, inputs, or open."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import floats
from tests.importers.onnx.checks import by_reference, by_runtime, check, check_node, node

pytestmark = pytest.mark.onnx

NUMBER = np.array


@pytest.mark.parametrize(
    ("x", "length", "axis", "options", "fixed"),
    [
        (floats(2, 7, 3, 1), None, 1, {}, True),
        (floats(2, 7, 3, 1), None, -3, {"onesided": 1}, False),
        (floats(2, 7, 3, 2), 5, 1, {}, True),
        (floats(2, 8, 3, 2), 11, 2, {"inverse": 1}, True),
        (floats(2, 8, 3, 2), 11, 2, {"inverse": 1}, False),
        (floats(2, 5, 3, 2), None, 1, {"inverse": 1, "onesided": 1}, False),
        (floats(2, 5, 3, 2), 9, 1, {"inverse": 1, "onesided": 1}, True),
        (floats(2, 5, 3, 2), 9, 1, {"inverse": 1, "onesided": 1}, False),
        (floats(2, 5, 3, 1).astype(np.float64), 8, 0, {"onesided": 1}, True),
        (floats(2, 5, 3, 1).astype(np.float16), 4, -2, {}, False),
    ],
)
def test_transforms(x: np.ndarray, length: int | None, axis: int, options: dict[str, Any], fixed: bool) -> None:
    count = None if length is None else NUMBER(length)
    tolerance = 1e-2 if x.dtype == np.float16 else 1e-5
    check_node(
        "DFT", x, count, NUMBER(axis), fixed=fixed, oracle=by_reference, tolerance=tolerance, **options
    )  # fmt: skip


def test_the_axis_was_an_attribute() -> None:
    check_node("DFT", floats(2, 6, 3, 1), opset=17, oracle=by_reference, axis=2, onesided=1)
    with pytest.raises(trivium.UnsupportedOpError, match="axis has 3, expected a dimension of the signal"):
        trivium.from_onnx(node("DFT", floats(2, 6, 3, 1), opset=17, axis=3))


@pytest.mark.parametrize(
    ("window", "length", "onesided", "fixed"),
    [(floats(16), None, 1, True), (None, 16, 0, False), (floats(12), 12, 1, False)],
)
def test_frames(window: np.ndarray | None, length: int | None, onesided: int, fixed: bool) -> None:
    count = None if length is None else NUMBER(length)
    check_node(
        "STFT", floats(2, 50, 1), NUMBER(7), window, count, fixed=fixed, oracle=by_reference, onesided=onesided
    )  # fmt: skip


def test_frames_of_a_signal_of_any_length() -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[batch, length, 1] x, float[8] w) => (float[a, b, c, d] y) {
            step = Constant<value = int64 {3}>() y = STFT(x, step, w)
        }"""
    )
    for shape in ((1, 8, 1), (2, 30, 1)):
        check(made, [floats(*shape), floats(8)], oracle=by_reference)


def test_frames_of_a_signal_without_a_last_dimension() -> None:
    check_node("STFT", floats(2, 32), NUMBER(5), floats(8), opset=17)


def test_complex_signals() -> None:
    x = floats(2, 50, 2)
    results = trivium.compile(trivium.from_onnx(node("STFT", x, NUMBER(7), None, NUMBER(16), onesided=0)))(x)
    whole = x[..., 0] + 1j * x[..., 1]
    frames = np.stack([np.fft.fft(whole[:, start : start + 16]) for start in range(0, 35, 7)], 1)
    np.testing.assert_allclose(results[0][..., 0] + 1j * results[0][..., 1], frames, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("edges", "fixed"), [((0.0, 4000.0), True), ((64.0, 7600.0), False)])
def test_filters(edges: tuple[float, float], fixed: bool) -> None:
    numbers = [NUMBER(12), NUMBER(128), NUMBER(16000), *(NUMBER(edge, np.float32) for edge in edges)]
    check_node("MelWeightMatrix", *numbers, fixed=fixed, oracle=by_reference)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(op: str, periodic: int) -> None:
    check_node(op, NUMBER(9), fixed=bool(periodic), oracle=by_runtime, periodic=periodic)
