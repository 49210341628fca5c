"""Compares the import of an ONNX model with ONNX's own evaluator: every result of every node. Graphs inside of nodes
are compared as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper
from onnx.external_data_helper import load_external_data_for_model
from onnx.reference import ReferenceEvaluator

from trivium.debug.differences import difference
from trivium.debug.parting import Parting
from trivium.importers.onnx import import_module
from trivium.importers.onnx.files import read_model
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def read(path: Path) -> onnx.ModelProto:
    """Returns the model in a file, with the tensors that are in other files of its folder."""
    model, folder = read_model(path)
    import_module(model, folder=folder)  # which refuses files that are somewhere else
    load_external_data_for_model(model, folder)
    return model


class Run:
    """One run of a model by ONNX's evaluator: `module` is its import for arguments of these shapes, `results` are what
    the evaluator returns. `compare` then tells the first node that the import gets wrong."""

    def __init__(self, model: onnx.ModelProto, arguments: Sequence[object]):
        initializers = {tensor.name for tensor in model.graph.initializer}
        names = [info.name for info in model.graph.input if info.name not in initializers]
        if len(names) != len(arguments):
            raise Error(f"the model has {len(names)} inputs ({', '.join(names)}), and {len(arguments)} arguments")
        self.arguments = list(map(np.asarray, arguments))
        self._model = model
        self._shapes = {name: array.shape for name, array in zip(names, self.arguments, strict=True)}
        self.module: Module = import_module(model, shapes=self._shapes)
        self._values = _values(model, dict(zip(names, self.arguments, strict=True)))
        self.results = [self._values[info.name] for info in model.graph.output]

    def compare(self, tolerance: float | None = None) -> Parting | None:
        """Returns the first node whose import differs; `None` if there is none."""
        shown = list(self._shown())
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        del model.graph.output[:]
        model.graph.output.extend(_described(name, self._values[name]) for _, _, name in shown)
        ours = evaluate(import_module(model, shapes=self._shapes), *self.arguments)
        for (node, index, name), mine in zip(shown, ours, strict=True):
            found = difference(mine, self._values[name], tolerance)
            if found is not None:
                text = f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})"
                return Parting(text, node.name, index, found, "importing from ONNX")
        return None

    def _shown(self) -> Iterator[tuple[onnx.NodeProto, int, str]]:
        """Yields the results of nodes that are tensors of numbers: node, index and name."""
        for node in self._model.graph.node:
            for index, name in enumerate(node.output):
                value = self._values.get(name)
                if name and isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                    yield node, index, name


def _values(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Returns the values of all names."""
    try:
        return ReferenceEvaluator(model).run(None, dict(given), intermediate=True)  # pyright: ignore[reportReturnType]
    except Exception as error:  # the evaluator raises exceptions of various types
        raise Error(f"ONNX's evaluator cannot run the model: {error}") from error


def _described(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
