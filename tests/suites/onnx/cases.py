"""ONNX's own backend tests: what is in them, and what becomes of one on Trivium or on ONNX Runtime, compared by ONNX's
own tolerances."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import trivium

SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")

EQUAL, REFUSED, WRONG, CRASHED = "equal", "refused", "wrong", "crashed"

ROUGH = {"node/dft_inverse": 2e-6, "node/dft_inverse_opset19": 2e-6}
"""Tests whose expected results have rounding errors beyond the tolerance, of these sizes: 2e-7 and more in place of
zeros."""

DRAWN = ("bernoulli", "training_dropout")
"""How the names of tests begin whose expected results NumPy has drawn. Nothing else draws the same: shapes and types
are compared."""

Data = tuple[Sequence[np.ndarray], Sequence[np.ndarray]]
Run = Callable[[onnx.ModelProto, Sequence[np.ndarray]], Sequence[np.ndarray]]


class Verdict(NamedTuple):
    """`kind`: equal, refused (a named error), wrong, or crashed (any other exception)."""

    kind: str
    reason: str = ""


@dataclass(frozen=True)
class Case:
    """One test. Its model and its data are read when they are asked for."""

    suite: str
    test: TestCase

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.test.name.removeprefix('test_')}"

    @property
    def model(self) -> onnx.ModelProto:
        if self.test.model is not None:
            return self.test.model
        assert self.test.model_dir is not None
        return onnx.load(Path(self.test.model_dir, "model.onnx"))

    @property
    def data(self) -> Sequence[Data]:
        if self.test.data_sets is not None:
            return [(_read(inputs), _read(outputs)) for inputs, outputs in self.test.data_sets]
        assert self.test.model_dir is not None
        return [(_arrays(folder, "input"), _arrays(folder, "output")) for folder in _folders(self.test.model_dir)]

    @property
    def is_drawn(self) -> bool:
        """Whether the expected results are random numbers."""
        name = self.name.partition("/")[2]
        return name.startswith(DRAWN) and "zero_ratio" not in name

    def check(self, run: Run) -> None:
        """Raises an `AssertionError` if what `run` gives differs from what the test expects."""
        model = self.model
        for inputs, expected in self.data:
            results = [np.asarray(result) for result in run(model, inputs)]
            if self.is_drawn:
                assert [(x.shape, x.dtype) for x in results] == [(x.shape, x.dtype) for x in expected]
                continue
            atol = max(self.test.atol, ROUGH.get(self.name, 0))
            Runner.assert_similar_outputs(expected, results, self.test.rtol, atol)


@cache
def cases() -> dict[str, Case]:
    """The tests that hold tensors of numbers only, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, where the expected results are infinite
        found = [Case(suite, test) for suite in SUITES for test in load_model_tests(kind=suite)]
    return {case.name: case for case in found if _has_numbers_only(case.model)}


def judge(case: Case, run: Run) -> Verdict:
    """What becomes of a test."""
    try:
        case.check(run)
    except trivium.Error as error:
        return Verdict(REFUSED, _line(str(error)))
    except AssertionError as error:
        return Verdict(WRONG, _line(str(error)))
    except Exception as error:
        return Verdict(CRASHED, _line(f"{type(error).__name__}: {error}"))
    return Verdict(EQUAL)


def on_trivium(model: onnx.ModelProto, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    return trivium.compile(trivium.from_onnx(model))(*inputs)


def on_onnxruntime(model: onnx.ModelProto, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


RUNTIMES: dict[str, Run] = {"trivium": on_trivium, "onnxruntime": on_onnxruntime}


def _has_numbers_only(model: onnx.ModelProto) -> bool:
    types = [entry.type for entry in (*model.graph.input, *model.graph.output)]
    kinds = {kind.tensor_type.elem_type for kind in types if kind.HasField("tensor_type")}
    return all(kind.HasField("tensor_type") for kind in types) and onnx.TensorProto.STRING not in kinds


def _folders(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("test_data_set*"))


def _arrays(folder: Path, kind: str) -> list[np.ndarray]:
    count = len(list(folder.glob(f"{kind}_*.pb")))
    return [onnx.numpy_helper.to_array(onnx.load_tensor(folder / f"{kind}_{index}.pb")) for index in range(count)]


def _read(values: Sequence[np.ndarray | onnx.TensorProto]) -> list[np.ndarray]:
    return [onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x) for x in values]


def _line(text: str) -> str:
    """The first two lines of an error, in one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:3])[:280]
