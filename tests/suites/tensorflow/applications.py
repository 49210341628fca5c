"""The models of `keras.applications`, with random weights, beside TensorFlow:
`python -m tests.suites.tensorflow.applications --page docs/applications.md`. Results of several calls are joined in one
file, from which the page is written."""

from __future__ import annotations

import argparse
import inspect
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import trivium.tensorflow
from tests.suites.kept import load, store
from tests.suites.runs import ROOT
from tests.suites.tensorflow.apart import apart

NAMES = sorted(name for name in dir(keras.applications) if name[0].isupper())

PIXELS, PIXELS_OF = 96, {"InceptionResNetV2": 160, "InceptionV3": 160}
"""The height and width of the images, so that more than one element of each image reaches every normalization: where
one does, its variance is that of two numbers, and each difference of theirs, however small, becomes 1."""

PATIENCE = 600
"""Seconds of processor time for one model."""

TOLERANCE, SLACK = 1e-4, 4
"""The largest error, relative to the largest element, or to TensorFlow's own one: deep models with random weights
amplify every rounding."""

LARGEST = 1e-2
"""The error of TensorFlow's up to which it says something."""

Outcome = Mapping[str, Any]


def outcome(name: str) -> Outcome:
    """Runs a model in float32 with both, and in float64 with TensorFlow, which is the reference."""
    started = time.monotonic()
    pixels = PIXELS_OF.get(name, PIXELS)
    images = np.random.default_rng(0).standard_normal((2, pixels, pixels, 3))
    reference, weights = _reference(name, images)
    model = _made(name, "float32")
    model.set_weights(weights)

    def forward(x: Any) -> Any:
        return model(x, training=False)

    compiled = trivium.tensorflow.function(forward)
    x = tf.constant(images, tf.float32)
    mine, theirs = (_error(f(x).numpy(), reference) for f in (compiled, tf.function(forward)))
    return {
        "is equal": theirs <= LARGEST and mine <= max(TOLERANCE, SLACK * theirs),
        "pixels": pixels,
        "weights": int(model.count_params()),
        "errors": [mine, theirs],
        "outside": sorted(compiled._setup.foreign),
        "seconds": time.monotonic() - started,
    }


def _reference(name: str, images: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The outputs in float64, and weights with which they depend on the images: no weights are all zeros or all ones,
    and normalizations have the means and variances of these images."""
    model = _made(name, "float64")
    random = np.random.default_rng(1)
    model.set_weights([x + random.uniform(0, 0.1, x.shape) if x.ndim < 2 else x for x in model.get_weights()])
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    tf.function(lambda x: model(x, training=True))(tf.constant(images))
    model.set_weights([x.astype(np.float32) for x in model.get_weights()])
    return tf.function(lambda x: model(x, training=False))(tf.constant(images)).numpy(), model.get_weights()


def _made(name: str, dtype: str) -> Any:
    keras.config.set_dtype_policy(dtype)
    keras.utils.set_random_seed(0)
    make = getattr(keras.applications, name)
    pixels = PIXELS_OF.get(name, PIXELS)
    options = {"weights": None, "input_shape": (pixels, pixels, 3), "classifier_activation": None}
    return make(**{name: x for name, x in options.items() if name in inspect.signature(make).parameters})


def _error(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(got - wanted)) / np.max(np.abs(wanted)))


OPENING = """# Models of Keras

What `python -m tests.suites.tensorflow.applications` found, with Keras {version}: each model of `keras.applications`
with random weights, in inference, for two square images of this many pixels a side. The errors are those of f32,
relative to the largest element of what TensorFlow computes in f64. Equal means that Trivium's is at most {tolerance} or
{slack} times TensorFlow's, which is at most {largest}. {count} of {all} models were run; {equal} are equal. This page
is generated.

| model | weights | pixels | result | Trivium's error | TensorFlow's error | run in TensorFlow |
|---|---:|---:|---|---:|---:|---|
"""


def page(results: Mapping[str, Outcome]) -> str:
    """The page, in Markdown."""
    opening = OPENING.format(
        version=keras.__version__,
        tolerance=TOLERANCE,
        slack=SLACK,
        largest=LARGEST,
        count=len(results),
        all=len(NAMES),
        equal=sum(x["is equal"] for x in results.values()),
    )
    return opening + "\n".join(_rows(results)) + "\n"


def _rows(results: Mapping[str, Outcome]) -> Iterator[str]:
    for name in NAMES:
        if (found := results.get(name)) is None:
            yield f"| {name} | | | not run | | | |"
            continue
        mine, theirs = found["errors"]
        outside = ", ".join(f"`{x}`" for x in found["outside"])
        verdict = "equal" if found["is equal"] else "wrong"
        size = f"{found['weights']:,} | {found['pixels']}"
        yield f"| {name} | {size} | {verdict} | {mine:.1e} | {theirs:.1e} | {outside} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.tensorflow.applications", description=__doc__)
    parser.add_argument("--only", nargs="+", default=NAMES, help="names of models")
    parser.add_argument("--rest", action="store_true", help="only models that have no result yet")
    parser.add_argument("--results", type=Path, default=ROOT / "out/tensorflow_suite/applications.json")
    parser.add_argument("--page", type=Path, help="write the page there")
    options = parser.parse_args()
    results = load(options.results)
    for name in options.only:
        if options.rest and name in results:
            continue
        found = apart(lambda name=name: outcome(name), PATIENCE)
        print(name, found or "ended", flush=True)
        if found is not None:
            store(options.results, results := {**results, name: found})
    if options.page is not None:
        options.page.write_text(page(results))


if __name__ == "__main__":
    main()
