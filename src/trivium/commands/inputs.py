"""The arrays on which commands run programs: random ones, or those in the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trivium.debug.values import random_array
from trivium.executable import Signature
from trivium.ir.arrays import read_argument
from trivium.ir.errors import Error
from trivium.ir.func import Function
from trivium.ir.types import TensorType


def inputs_of(signature: Signature, seed: int | None, files: Sequence[Path]) -> list[np.ndarray]:
    """Returns random arrays from a seed or, if it is None, the arrays in files, one for each argument."""
    if seed is not None and files:
        raise Error("--random and --input cannot be used together")
    if seed is None and len(files) != len(signature.arguments):
        raise Error(f"the command has {len(files)} --input files, expected {len(signature.arguments)} (or --random)")
    if seed is None:
        return [read_array(path) for path in files]
    generator = np.random.default_rng(seed)
    return [random_array(generator, kind) for kind in static_types(signature)]


def inputs_of_function(function: Function, files: Sequence[Path]) -> list[np.ndarray]:
    """Returns the arrays in files, which must be of the types of a function's arguments."""
    arrays = inputs_of(Signature.of(function), None, files)
    given = enumerate(zip(arrays, function.function_type.inputs, strict=True))
    return [read_argument(array, kind, f"argument {i} of {function.sym_name}") for i, (array, kind) in given]


def static_types(signature: Signature) -> list[TensorType]:
    """Returns the types of the arguments, which must have static shapes."""
    kinds = [parameter.type for parameter in signature.arguments]
    for index, kind in enumerate(kinds):
        if not getattr(kind, "is_static", False):
            raise Error(
                f"argument {index} has type {kind}, expected one of static shape (trivium convert --shape fixes sizes)"
            )
    return kinds


def read_array(path: Path) -> np.ndarray:
    """Reads the array in a .npy file. The file is mapped first, so a header cannot request more than it has."""
    if not path.exists():
        raise Error(f"{path} does not exist")
    if not path.is_file():
        raise Error(f"cannot read {path}: it is not a file")
    try:
        with open(path, "rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):  # an array, and an archive of arrays
                raise ValueError("it is not a .npy file")
        with np.errstate(all="ignore"):
            array = np.load(path, allow_pickle=False, mmap_mode="r")
        if not isinstance(array, np.ndarray):
            array.close()
            raise ValueError("has several arrays, expected a .npy file with one")
        if array.dtype.kind not in "biufcV" or not array.dtype.itemsize:
            raise ValueError(f"has elements of type {array.dtype}, expected numbers")
        return np.array(array)
    # NumPy parses the header as Python source, and raises anything that Python's parser does.
    except Exception as error:
        raise Error(f"cannot read {path}: {error or type(error).__name__}") from None


def reshaped(array: np.ndarray, kind: TensorType) -> np.ndarray:
    if array.size != kind.size:
        raise Error(f"an input has shape {array.shape}, expected one of {kind.size} elements for {kind}")
    return array.reshape(kind.static_shape)
