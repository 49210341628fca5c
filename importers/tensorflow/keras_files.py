"""Models in Keras's own files: Keras builds them of its layers, in its safe mode, which runs nothing in the file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

from trivium.ir.errors import Error

SUFFIXES = (".keras", ".h5", ".hdf5")


def is_keras_file(function: object) -> TypeGuard[str | Path]:
    """Whether it is the path of a file that Keras writes."""
    return isinstance(function, str | Path) and Path(function).suffix in SUFFIXES


def load_model(path: str | Path, trust: bool) -> object:
    """Returns the model in a file. Python functions in it are rejected, unless the user trusts it."""
    import keras

    if not Path(path).is_file():
        raise Error(f"{path} is not a file, expected a Keras model")
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=not trust)
    # Various types: from archives, configurations and layers.
    except Exception as error:
        raise Error(f"Keras cannot load {path}: {error}") from error
