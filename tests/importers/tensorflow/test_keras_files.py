"""Models in files of Keras: they compute what Keras computes, and nothing in them is run."""

import os
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import trivium

pytestmark = pytest.mark.tensorflow

X = np.random.default_rng(0).standard_normal((2, 6, 5, 3)).astype(np.float32)


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_models_compute_what_keras_computes(suffix: str, tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input(batch_shape=X.shape),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    model.save(tmp_path / f"model.{suffix}")
    for module in (
        trivium.load(tmp_path / f"model.{suffix}"),
        trivium.from_tensorflow(tmp_path / f"model.{suffix}", X),
    ):
        np.testing.assert_allclose(trivium.evaluate(module, X)[0], model(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_functions_in_files_do_not_run(suffix: str, tmp_path: Path, marker: Path) -> None:
    def mark(x: object, path: str = str(marker)) -> object:
        open(path, "w").close()
        return x

    model = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(mark)])
    model.save(tmp_path / f"model.{suffix}")
    marker.unlink(missing_ok=True)
    with pytest.raises(trivium.Error, match="Keras cannot load"):
        trivium.from_tensorflow(tmp_path / f"model.{suffix}")
    assert not marker.exists()


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(trivium.Error, match="is not a file"):
        trivium.from_tensorflow(tmp_path / "model.keras")
    (tmp_path / "model.keras").write_bytes(b"nothing")
    with pytest.raises(trivium.Error, match="Keras cannot load"):
        trivium.load(tmp_path / "model.keras")
