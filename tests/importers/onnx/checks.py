"""Models of one node, and how their results are compared with those of ONNX Runtime, or of ONNX's reference."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import trivium

DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 5}
"""Versions of operator sets other than ONNX's own."""


def node(
    op: str, *inputs: np.ndarray | None, outputs: int = 1, opset: int = 21, domain: str = "", version: int = 0,
    fixed: bool = True, **attributes: Any,
) -> Any:  # fmt: skip
    """A model of one node; inputs whose elements are integers of 64 bits are constants, if they are `fixed`. `version`
    is that of the domain's operator set, if it is not the usual one."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    made = onnx.helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    infos, constants = [], []
    for name, x in zip(names, inputs, strict=True):
        if x is not None and fixed and x.dtype == np.int64:
            constants.append(onnx.numpy_helper.from_array(x, name))
        elif x is not None:
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            infos.append(onnx.helper.make_tensor_value_info(name, kind, x.shape))
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in made.output]
    opsets = [onnx.helper.make_opsetid("", opset)]
    if domain:
        opsets.append(onnx.helper.make_opsetid(domain, version or DOMAINS[domain]))
    graph = onnx.helper.make_graph([made], "g", infos, results, constants)
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_runtime(model: Any, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {entry.name: np.asarray(x) for entry, x in zip(session.get_inputs(), inputs, strict=True)})


def by_exact_runtime(model: Any, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """What ONNX Runtime computes with weights of signed bytes as constants, so that it can make their sums exact: where
    a processor has no instruction for products of four bytes, they saturate otherwise."""
    exact = onnx.ModelProto()
    exact.CopyFrom(model)
    known = {
        entry.name: x for entry, x in zip(model.graph.input, inputs, strict=True) if np.asarray(x).dtype == np.int8
    }
    exact.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in known.items())
    left = [(entry, x) for entry, x in zip(model.graph.input, inputs, strict=True) if entry.name not in known]
    del exact.graph.input[:]
    exact.graph.input.extend(entry for entry, _ in left)
    return by_runtime(exact, [x for _, x in left])


def by_reference(model: Any, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """What ONNX's reference evaluator computes."""
    feeds = {entry.name: x for entry, x in zip(model.graph.input, inputs, strict=True)}
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)


Oracle = Callable[[Any, Sequence[np.ndarray]], Sequence[np.ndarray]]


def check(model: Any, inputs: Sequence[np.ndarray], tolerance: float = 1e-4, oracle: Oracle = by_runtime) -> None:
    expected = oracle(model, inputs)
    module = trivium.from_onnx(model)
    module.verify()
    results = trivium.compile(module)(*inputs)
    assert len(results) == len(expected)
    for result, wanted in zip(results, map(np.asarray, expected), strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)


def check_node(
    op: str, *inputs: np.ndarray | None, outputs: int = 1, opset: int = 21, domain: str = "", fixed: bool = True,
    tolerance: float = 1e-4, oracle: Oracle = by_runtime, **attributes: Any,
) -> None:  # fmt: skip
    given = [x for x in inputs if x is not None and not (fixed and x.dtype == np.int64)]
    made = node(op, *inputs, outputs=outputs, opset=opset, domain=domain, fixed=fixed, **attributes)
    check(made, given, tolerance, oracle)


def with_dynamic_rows(model: Any) -> Any:
    """A model whose inputs, and results, have any number of rows."""
    result = onnx.ModelProto.FromString(model.SerializeToString())
    for info in result.graph.input:
        info.type.tensor_type.shape.dim[0].dim_param = "rows"
    return result


def check_rows(
    op: str, *inputs: np.ndarray, outputs: int = 1, version: int = 3, tolerance: float = 1e-4,
    oracle: Oracle = by_runtime, known: bool = True, **attributes: Any,
) -> None:  # fmt: skip
    """Checks a node of `ai.onnx.ml` for any number of rows, and for one that is `known`."""
    made = node(op, *inputs, outputs=outputs, domain="ai.onnx.ml", version=version, fixed=False, **attributes)
    for model in (with_dynamic_rows(made), *([made] if known else [])):
        check(model, inputs, tolerance, oracle)
