"""Random calls of ops: arguments and attributes drawn from what an op declares. Most draws of the ops with many
arguments are refused by TensorFlow itself; so many are drawn until one is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tests.suites.tensorflow.ops import dtypes_of
from trivium.importers.tensorflow.state import DRAWING

SHAPES = ((3, 4), (2, 3, 4), (4,), (), (1, 4, 6, 4), (2, 5, 5), (2, 4, 4, 4, 2), (0, 3), (6, 6))
SQUARES = ((6, 6), (2, 5, 5), (2, 3, 4, 4), (1, 1), (0, 0))
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-30, 3e38, -2.5, 1e4)
HOST = ("axis", "axes", "dim", "perm", "shape", "size", "paddings", "multiples", "begin", "end", "strides", "depth",
        "reduction_indices", "block_shape", "crops", "dims", "num", "limit", "start", "delta", "k", "num_segments",
        "concat_dim", "split_dim", "size_splits", "boundaries", "input_sizes", "filter_sizes", "max_output_size",
        "num_lower", "num_upper", "shift", "equation", "orig_input_shape", "num_rows", "num_cols")  # fmt: skip
"""Arguments that a program usually knows."""

SCALARS = ("lr", "rho", "epsilon", "alpha", "momentum", "beta1", "beta2", "beta1_power", "beta2_power", "l1", "l2",
           "lr_power", "l2_shrinkage", "beta", "logbase", "sign_decay", "global_step", "low", "high")  # fmt: skip
"""Arguments of one number, between 0 and 1."""

POSITIVE = frozenset({"accum", "ms", "v", "accum_update", "gradient_squared_accumulator"})
"""Variables that hold sums of squares. Where they were negative, all results would be NaN."""

ONLY_CASES = frozenset({"Cholesky", "Eig", "Qr", "SelfAdjointEigV2", "Svd", "XlaSelfAdjointEig", "XlaSvd"})
"""Ops that need matrices of a kind, or whose results are determined up to signs only."""

SQUARE = frozenset(
    {"LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixTriangularSolve"}
)
"""Ops of square matrices, whose other argument may be square too."""

SHAPED: dict[str, dict[str, tuple[int, ...]]] = {
    "TridiagonalMatMul": {"superdiag": (2, 1, 5), "maindiag": (2, 1, 5), "subdiag": (2, 1, 5), "rhs": (2, 5, 3)},
    "TridiagonalSolve": {"diagonals": (2, 3, 5), "rhs": (2, 5, 3)},
}
"""Shapes of arguments that fit together too rarely."""

RANGES = {"DataFormatDimMap": (-4, 4)}
"""Integers that an op takes, where TensorFlow's kernel reads a table with any."""


@dataclass(frozen=True)
class Call:
    """A call of a raw op. `variables` are the initial values of those that it takes; `known` are constants."""

    op: str
    operands: dict[str, Any]
    known: dict[str, Any]
    variables: dict[str, np.ndarray]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        given = [f"{name}: {_described(x)}" for name, x in (self.operands | self.variables).items()]
        given += [f"{name}={_told(x)}" for name, x in (self.known | self.attributes).items()]
        return f"{self.op}({', '.join(given)})"


def drawn(op: str, seed: int) -> Call:
    """Returns the call that a seed stands for. Raises a `LookupError` for ops whose inputs are not drawn."""
    if op in ONLY_CASES or op in DRAWING:
        raise LookupError(op)
    return _Draw(op, np.random.default_rng([seed, *op.encode()])).call()


class _Draw:
    def __init__(self, op: str, random: np.random.Generator):
        self.op, self.random = op, random
        self.declared = op_def_registry.get(op)
        self.shape = self._one_of(SQUARES if op in SQUARE else SHAPES)
        self.is_special = random.random() < 0.3
        self.is_alike = random.random() < 0.7 or op in SQUARE
        self.attributes: dict[str, Any] = {}
        self.types: dict[str, tf.DType] = {}
        self.counts: dict[str, int] = {}

    def call(self) -> Call:
        for attribute in self.declared.attr:
            self._draw_attribute(attribute)
        operands, known, variables = {}, {}, {}
        for argument in self.declared.input_arg:
            if argument.type == tf.resource.as_datatype_enum:
                dtype = self.types.get("T") or self.types.get("dtype") or tf.float32
                variables[argument.name] = self._variable(argument.name, dtype)
            elif argument.number_attr:
                values = [self._tensor(argument) for _ in range(self.counts[argument.number_attr])]
                operands[argument.name] = values
            else:
                value = self._tensor(argument)
                (known if self._is_known(argument, value) else operands)[argument.name] = value
        return Call(self.op, operands, known, variables, self.attributes)

    def _variable(self, name: str, dtype: tf.DType) -> np.ndarray:
        start = self._array(name, dtype)
        return start * start if name in POSITIVE and dtype.is_floating else start

    def _draw_attribute(self, attribute: Any) -> None:
        name, kind = attribute.name, attribute.type
        inputs = self.declared.input_arg
        if kind == "type":
            self.types[name] = self._one_of(dtypes_of(self.op, name))
            if not any(x.type_attr == name for x in inputs):
                self.attributes[name] = self.types[name]
        elif any(name in (x.number_attr, x.type_list_attr) for x in inputs):
            self.counts[name] = int(self.random.integers(1, 4))
        elif kind == "string" and attribute.allowed_values.list.s:
            self.attributes[name] = self._one_of([x.decode() for x in attribute.allowed_values.list.s])
        elif kind == "bool":
            self.attributes[name] = bool(self.random.random() < 0.5)
        elif kind == "list(int)":
            self._draw_list(name, bool(attribute.default_value.list.i))
        elif not attribute.HasField("default_value"):
            self._draw_number(name, kind)

    def _draw_list(self, name: str, has_default: bool) -> None:
        if name in ("ksize", "strides", "dilations") and not (has_default and self.random.random() < 0.5):
            rank = max(len(self.shape), 4)
            inner = self.random.integers(1, 3, rank - 2).tolist()
            self.attributes[name] = [1, *inner, 1]

    def _draw_number(self, name: str, kind: str) -> None:
        if kind in ("int", "float"):
            self.attributes[name] = int(self.random.integers(1, 4)) if kind == "int" else float(self.random.random())
        elif kind == "shape":
            self.attributes[name] = list(self.shape)

    def _tensor(self, argument: Any) -> np.ndarray:
        dtype = self.types[argument.type_attr] if argument.type_attr else tf.as_dtype(argument.type)
        return self._array(argument.name, dtype)

    def _array(self, name: str, dtype: tf.DType) -> np.ndarray:
        if dtype.is_integer and (name in HOST or name in ("indices", "segment_ids", "seed")):
            shape = self._one_of([(), (1,), (2,), (3,), (4,), self.shape, (len(self.shape),), (len(self.shape), 2)])
            return np.asarray(self.random.integers(-1 if name in HOST else 0, 4, shape)).astype(dtype.as_numpy_dtype)
        if name in SCALARS:
            return np.asarray(self.random.random()).astype(dtype.as_numpy_dtype)
        shape = SHAPED.get(self.op, {}).get(name)
        if shape is not None:
            return self._numbers(shape, dtype)
        shape = self.shape if self.is_alike else self._one_of([self.shape, self.shape[1:], (), (4,), (1, 4)])
        numbers = self._numbers(shape, dtype)
        if name == "sorted_inputs" and numbers.ndim:  # NaN has no place in an order
            return np.sort(np.where(np.isnan(numbers), 0, numbers).astype(numbers.dtype))
        if self.op == "ApproxTopK":  # XLA's sort by `>` has no place for NaN, and puts equal elements in any order
            return self.random.permutation(numbers.size).reshape(shape).astype(numbers.dtype)
        return numbers

    def _numbers(self, shape: tuple[int, ...], dtype: tf.DType) -> np.ndarray:
        kind = dtype.as_numpy_dtype
        if dtype.is_bool:
            return self.random.random(shape) < 0.5
        if dtype.is_integer:
            low, high = RANGES.get(self.op, (0 if dtype.is_unsigned else -6, 7))
            return np.asarray(self.random.integers(low, high, shape)).astype(kind)
        numbers = self.random.standard_normal(shape) * self._one_of([1, 1, 4])
        if dtype.is_complex:
            numbers = numbers + 1j * self.random.standard_normal(shape)
        elif self.is_special:
            numbers = np.where(self.random.random(shape) < 0.5, self.random.choice(SPECIAL, shape), numbers)
        with np.errstate(all="ignore"):
            return np.asarray(numbers).astype(kind)

    def _is_known(self, argument: Any, value: np.ndarray) -> bool:
        return argument.name in HOST or (value.dtype.kind in "iu" and value.size <= 4 and value.ndim <= 1)

    def _one_of(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]


def _described(x: Any) -> str:
    return f"[{', '.join(map(_described, x))}]" if isinstance(x, list) else f"{x.dtype}{list(x.shape)}"


def _told(x: Any) -> str:
    return x.name if isinstance(x, tf.DType) else str(x.tolist() if isinstance(x, np.ndarray) else x)
