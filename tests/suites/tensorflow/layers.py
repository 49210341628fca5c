"""The layers of Keras, in inference and in training, beside TensorFlow:
`python -m tests.suites.tensorflow.layers --page docs/keras.md`. Layers draw their random numbers from seeds, so those
of two runs are the same ones. The results are in a file, from which the page is written; runs with `--only` or `--rest`
add to it."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import trivium.tensorflow
from tests.suites.kept import load, store
from tests.suites.runs import ROOT
from tests.suites.tensorflow.checks import EQUAL, INVALID, REFUSED, WRONG, Verdict, compared

L = keras.layers


class Case(NamedTuple):
    """A layer, by what makes it, and the shapes of its inputs: those of one are given as they are, of several in a
    list. Images are numbers between 0 and 255."""

    name: str
    make: Callable[[], Any]
    shapes: Any
    kind: str = "float"


def _simple(shape: tuple[int, ...], names: str, **options: Any) -> list[Case]:
    return [Case(name, lambda name=name: getattr(L, name)(**options), shape) for name in names.split()]


def _spatial(form: str, *, first: tuple[Any, ...] = (), **options: Any) -> list[Case]:
    """A layer of one, two and three dimensions; `form` is its name with D for the number."""
    shapes = ((2, 8, 3), (2, 6, 7, 3), (1, 4, 5, 6, 2))
    return [
        Case(name, lambda name=name: getattr(L, name)(*first, **options), shape)
        for number, shape in enumerate(shapes, 1)
        if hasattr(L, name := form.replace("#", str(number)))
    ]


BASIC = [
    *_simple((2, 5, 4), "ELU Flatten GlobalAveragePooling1D GlobalMaxPooling1D Identity LayerNormalization LeakyReLU"),
    *_simple((2, 5, 4), "BatchNormalization Masking PReLU RMSNormalization ReLU Softmax UnitNormalization"),
    *_simple((2, 5, 4), "ActivityRegularization Attention AdditiveAttention")[:1],
    *_simple((2, 5, 4), "AlphaDropout Dropout GaussianDropout SpatialDropout1D", rate=0.4, seed=3),
    Case("Activation", lambda: L.Activation("gelu"), (2, 4)),
    Case("CategoryEncoding", lambda: L.CategoryEncoding(8, "multi_hot"), (3, 4), "int"),
    Case("Dense", lambda: L.Dense(5, "tanh"), (2, 4)),
    Case("Discretization", lambda: L.Discretization([-1.0, 0.0, 0.5]), (3, 4)),
    Case("EinsumDense", lambda: L.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d"), (2, 5, 4)),
    Case("Embedding", lambda: L.Embedding(8, 5), (3, 4), "int"),
    Case("GaussianNoise", lambda: L.GaussianNoise(0.5, seed=3), (2, 4)),
    Case("GroupNormalization", lambda: L.GroupNormalization(2), (2, 5, 4)),
    Case("Hashing", lambda: L.Hashing(5), (3, 4), "int"),
    Case("IntegerLookup", lambda: L.IntegerLookup(vocabulary=[1, 3, 5]), (3, 4), "int"),
    Case("Lambda", lambda: L.Lambda(lambda x: x * 2), (2, 4)),
    Case("Normalization", lambda: L.Normalization(mean=1.0, variance=4.0), (2, 4)),
    Case("Permute", lambda: L.Permute((2, 1)), (2, 3, 4)),
    Case("RepeatVector", lambda: L.RepeatVector(3), (2, 4)),
    Case("Rescaling", lambda: L.Rescaling(0.5, 1.0), (2, 4)),
    Case("Reshape", lambda: L.Reshape((2, -1)), (3, 4, 2)),
    Case("ReversibleEmbedding", lambda: L.ReversibleEmbedding(8, 5), (3, 4), "int"),
    Case("SpectralNormalization", lambda: L.SpectralNormalization(L.Dense(3)), (2, 4)),
    Case("TimeDistributed", lambda: L.TimeDistributed(L.Dense(3)), (2, 5, 4)),
    Case("Wrapper", lambda: L.TimeDistributed(L.Conv1D(2, 2)), (2, 3, 5, 4)),
]
MERGING = [
    *(Case(name, lambda name=name: getattr(L, name)(), [(2, 4), (2, 4)]) for name in ["Add", "Average", "Concatenate"]),
    *(Case(name, lambda name=name: getattr(L, name)(), [(2, 4)] * 2) for name in ["Maximum", "Minimum", "Multiply"]),
    Case("Subtract", L.Subtract, [(2, 4), (2, 4)]),
    Case("Dot", lambda: L.Dot(-1, normalize=True), [(2, 4), (2, 4)]),
    Case("Attention", L.Attention, [(2, 5, 4), (2, 6, 4)]),
    Case("AdditiveAttention", L.AdditiveAttention, [(2, 5, 4), (2, 6, 4)]),
]
SPATIAL = [
    *_spatial("AveragePooling#D", first=(2,)),
    *_spatial("MaxPooling#D", first=(2,)),
    *_spatial("AdaptiveAveragePooling#D", first=(2,)),
    *_spatial("AdaptiveMaxPooling#D", first=(2,)),
    *_spatial("GlobalAveragePooling#D"),
    *_spatial("GlobalMaxPooling#D"),
    *_spatial("Conv#D", first=(4, 3), strides=2, padding="same"),
    *_spatial("Conv#DTranspose", first=(4, 3), strides=2),
    *_spatial("DepthwiseConv#D", first=(3,), depth_multiplier=2),
    *_spatial("SeparableConv#D", first=(4, 3)),
    *_spatial("Cropping#D", first=(1,)),
    *_spatial("UpSampling#D", first=(2,)),
    *_spatial("ZeroPadding#D", first=(1,)),
    *_spatial("SpatialDropout#D", first=(0.4,), seed=3),
]
RECURRENT = [
    *(Case(name, lambda name=name: getattr(L, name)(5, return_sequences=True), (2, 6, 4)) for name in ("GRU", "LSTM")),
    Case("SimpleRNN", lambda: L.SimpleRNN(5), (2, 6, 4)),
    Case("Bidirectional", lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)), (2, 6, 4)),
    Case("RNN", lambda: L.RNN(L.GRUCell(3)), (2, 6, 4)),
    Case("StackedRNNCells", lambda: L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.SimpleRNNCell(2)])), (2, 6, 4)),
    Case("ConvLSTM1D", lambda: L.ConvLSTM1D(3, 2), (2, 3, 5, 2)),
    Case("ConvLSTM2D", lambda: L.ConvLSTM2D(3, 2), (1, 3, 5, 4, 2)),
    Case("ConvLSTM3D", lambda: L.ConvLSTM3D(2, 2), (1, 2, 4, 4, 3, 2)),
    Case("MultiHeadAttention", lambda: L.MultiHeadAttention(2, 3), [(2, 5, 4), (2, 6, 4)]),
    Case("GroupQueryAttention", lambda: L.GroupQueryAttention(3, 4, 2), [(2, 5, 4), (2, 6, 4)]),
]
PICTURES = [
    *(
        Case(name, lambda name=name: getattr(L, name)(value_range=(0, 255), seed=3), (2, 12, 10, 3), "image")
        for name in ("AugMix", "AutoContrast", "RandAugment")
        if name != "AutoContrast"
    ),
    Case("AutoContrast", L.AutoContrast, (2, 12, 10, 3), "image"),
    Case("CenterCrop", lambda: L.CenterCrop(6, 5), (2, 12, 10, 3), "image"),
    Case("Equalization", L.Equalization, (2, 12, 10, 3), "image"),
    Case("RandomBrightness", lambda: L.RandomBrightness(0.3, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomContrast", lambda: L.RandomContrast(0.3, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomColorJitter", lambda: L.RandomColorJitter(brightness_factor=0.2, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomCrop", lambda: L.RandomCrop(6, 5, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomErasing", lambda: L.RandomErasing(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomFlip", lambda: L.RandomFlip(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomGaussianBlur", lambda: L.RandomGaussianBlur(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomGrayscale", lambda: L.RandomGrayscale(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomHue", lambda: L.RandomHue(0.3, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomInvert", lambda: L.RandomInvert(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomPerspective", lambda: L.RandomPerspective(seed=3), (2, 12, 10, 3), "image"),
    Case("RandomPosterization", lambda: L.RandomPosterization(4, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomRotation", lambda: L.RandomRotation(0.2, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomSaturation", lambda: L.RandomSaturation(0.3, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomSharpness", lambda: L.RandomSharpness(0.3, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomShear", lambda: L.RandomShear(0.2, 0.2, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomTranslation", lambda: L.RandomTranslation(0.2, 0.2, seed=3), (2, 12, 10, 3), "image"),
    Case("RandomZoom", lambda: L.RandomZoom(0.2, seed=3), (2, 12, 10, 3), "image"),
    Case("Resizing", lambda: L.Resizing(7, 9), (2, 12, 10, 3), "image"),
    Case("Solarization", lambda: L.Solarization(seed=3), (2, 12, 10, 3), "image"),
    Case("MelSpectrogram", lambda: L.MelSpectrogram(fft_length=64, sequence_stride=16, num_mel_bins=8), (2, 256)),
    Case("STFTSpectrogram", lambda: L.STFTSpectrogram(frame_length=32, frame_step=16, fft_length=32), (2, 256, 1)),
]
CASES = [*BASIC, *MERGING, *SPATIAL, *RECURRENT, *PICTURES]


def checked(case: Case, training: bool) -> tuple[Verdict, list[str]]:
    """Runs a layer both ways; also returns the ops that ran in TensorFlow."""
    wanted, _ = _outcome(case, training, lambda f: tf.function(f, autograph=False))
    try:
        got, compiled = _outcome(case, training, lambda f: trivium.tensorflow.function(f, autograph=False))
    except Exception as error:  # various types: whatever a layer runs into
        return Verdict(WRONG, _line(error)), []
    return compared(got, wanted), sorted(compiled._setup.foreign)


def _outcome(case: Case, training: bool, compiler: Callable[..., Any]) -> tuple[list[np.ndarray], Any]:
    """Returns the outputs of a layer, the gradients of its weights, and the weights afterwards."""
    keras.utils.set_random_seed(0)
    inputs = _inputs(case)
    layer = case.make()
    _call(layer, inputs)
    takes_training = layer._call_has_training_arg

    def function(*inputs: Any) -> Any:
        options = {"training": training} if takes_training else {}
        return _call(layer, inputs, **options)

    compiled = compiler(function)
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(compiled(*inputs))
        squares = [tf.reduce_sum(tf.cast(x, tf.float32) ** 2) for x in outputs if x.dtype.is_floating]
        total = tf.add_n(squares) if squares else tf.constant(0.0)
    variables = [x.value for x in layer.trainable_variables]
    gradients = tape.gradient(total, variables) if variables and training else []
    dense = [tf.convert_to_tensor(x) for x in gradients if x is not None]
    results = [*outputs, *dense, *(x.value for x in layer.weights)]
    return [np.asarray(x) for x in results], compiled


def checked_file(case: Case) -> Verdict:
    """Runs a layer from a SavedModel that takes batches of any size, at inference, in two sizes. It is invalid if Keras
    does not write such a file."""
    keras.utils.set_random_seed(0)
    inputs = _inputs(case)
    layer = case.make()
    _call(layer, inputs)
    options = {"training": False} if layer._call_has_training_arg else {}
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype, f"x{i}") for i, x in enumerate(inputs)]
    archive = keras.export.ExportArchive()
    archive.track(layer)
    with tempfile.TemporaryDirectory() as folder:
        try:
            archive.add_endpoint("serve", lambda *xs: _call(layer, xs, **options), input_signature=specs)
            archive.write_out(folder, verbose=False)
        except Exception as error:  # various types: whatever Keras runs into
            return Verdict(INVALID, _line(error))
        try:
            program = trivium.from_tensorflow(folder)
            run = trivium.compile(program)
            for count in (1, 2):
                given = [tf.concat([x] * count, 0) for x in inputs]
                got = tf.nest.flatten(run(*_states(program, layer), *map(np.asarray, given)))
                wanted = tf.nest.flatten(_call(layer, given, **options))
                wanted += _states(program, layer)
                verdict = compared([np.asarray(x) for x in got], [np.asarray(x) for x in wanted])
                if verdict.kind != EQUAL:
                    break
        except trivium.UnsupportedOpError as error:
            return Verdict(REFUSED, ", ".join(sorted({op.name for op in error.ops})))
        except Exception as error:  # various types: whatever a layer runs into
            return Verdict(WRONG, _line(error))
    return verdict


def _states(program: trivium.Module, layer: Any) -> list[np.ndarray]:
    """Returns the present values of the variables that a program takes and returns: those that it assigns."""
    names = [str(about["trivium.name"]) for about in program.main.arg_attrs if about["trivium.role"] == "state"]
    variables = {variable.path: variable for variable in layer.variables}
    return [np.asarray(variables[name]) for name in names]


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _call(layer: Any, inputs: Any, **options: Any) -> Any:
    several = len(inputs) > 1
    if several and not isinstance(layer, (L.MultiHeadAttention, L.GroupQueryAttention)):
        return layer(list(inputs), **options)
    return layer(*inputs, **options)


def _inputs(case: Case) -> list[tf.Tensor]:
    random = np.random.default_rng(1)
    shapes = case.shapes if isinstance(case.shapes, list) else [case.shapes]
    draw = {
        "float": lambda shape: random.standard_normal(shape).astype(np.float32),
        "int": lambda shape: random.integers(0, 8, shape).astype(np.int32),
        "image": lambda shape: random.integers(0, 256, shape).astype(np.float32),
    }
    return [tf.constant(draw[case.kind](shape)) for shape in shapes]


OPENING = """# Layers of Keras

This page is generated by `python -m tests.suites.tensorflow.layers`, with Keras {version}. It runs each layer, in
inference and with `training=True`, once compiled by Trivium and once by TensorFlow, with equal seeds, and compares
outputs, weights and, in training, gradients of the weights. Ops without a rule run in TensorFlow. The fourth column is
for a SavedModel of the layer that takes batches of any size: it is imported without example inputs, and run with two
sizes.

| layer | inference | training | file, any batch | run in TensorFlow |
|---|---|---|---|---|
"""


def outcome(case: Case) -> dict[str, Any]:
    """The verdicts for inference and for training, with reasons, and the ops that ran in TensorFlow."""
    found = [checked(case, training) for training in (False, True)]
    file = checked_file(case)
    return {
        "kinds": [verdict.kind for verdict, _ in found],
        "reasons": [verdict.reason for verdict, _ in found],
        "file": [file.kind, file.reason],
        "outside": sorted({op for _, foreign in found for op in foreign}),
    }


def numbered(cases: Sequence[Case]) -> dict[str, Case]:
    """Cases by name, and by name and number if a layer has several."""
    found: dict[str, Case] = {}
    for case in cases:
        count = sum(other.name == case.name for other in found.values())
        found[f"{case.name} {count + 1}" if count else case.name] = case
    return found


def page(results: Mapping[str, Any]) -> str:
    """The page, in Markdown."""
    rows = []
    for key, case in numbered(CASES).items():
        found = results.get(key, {"kinds": ["not run"] * 2, "file": ["not run", ""], "outside": []})
        file, reason = found["file"]
        kinds = [*found["kinds"], f"{file}: `{reason}`" if file == REFUSED else file]
        rows.append(f"| {case.name} | {' | '.join(kinds)} | {', '.join(f'`{x}`' for x in found['outside'])} |")
    return OPENING.format(version=keras.__version__) + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.tensorflow.layers", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of layers")
    parser.add_argument("--rest", action="store_true", help="only layers that have no result yet")
    parser.add_argument("--results", type=Path, default=ROOT / "out/tensorflow_suite/layers.json")
    parser.add_argument("--page", type=Path, help="write the page there")
    options = parser.parse_args()
    results = load(options.results) if options.only or options.rest else {}
    for key, case in numbered(CASES).items():
        if (options.only and case.name not in options.only) or (options.rest and key in results):
            continue
        results[key] = outcome(case)
        print(key, results[key], flush=True)
        store(options.results, results)
    if options.page is not None:
        options.page.write_text(page(results))


if __name__ == "__main__":
    main()
