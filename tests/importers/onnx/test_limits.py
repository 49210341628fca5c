"""Small models that require more than a machine has: rejected with the node that requires it, or kept unchanged."""

import numpy as np
import pytest

import trivium
from tests.limits import bounded

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

HUGE = 10**12


def model(*nodes, **initializers):
    """Returns a model of nodes, the last of which computes `y`."""
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in initializers.items()]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = onnx.helper.make_graph([onnx.helper.make_node(*node) for node in nodes], "main", [], outputs, constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


FILLED = ("ConstantOfShape", ["s"], ["z"])
SQUARE = np.array([10**6, 10**6])
NOT_IMPORTED = {
    "indices": model(FILLED, ("NonZero", ["z"], ["y"]), s=np.array([HUGE])),
    "too many for an array": model(("ConstantOfShape", ["s"], ["y"]), s=np.array([1 << 62, 1 << 62])),
    "shape": model(FILLED, ("Cast", ["z"], ["w"]), ("ConstantOfShape", ["z"], ["y"]), s=np.array([HUGE])),
}
NOT_COMPILED = {
    "range": model(("Range", ["a", "b", "c"], ["y"]), a=np.float32(0), b=np.float32(HUGE), c=np.float32(1)),
    "eye": model(FILLED, ("EyeLike", ["z"], ["y"]), s=SQUARE),
    "triangle": model(FILLED, ("Trilu", ["z"], ["y"]), s=SQUARE),
    "filled": model(("ConstantOfShape", ["s"], ["y"]), s=np.array([HUGE])),
    "expanded": model(("Expand", ["x", "s"], ["y"]), x=np.float32(1), s=np.array([HUGE])),
    "tiled": model(("Tile", ["x", "s"], ["y"]), x=np.ones(4, np.float32), s=np.array([HUGE])),
    "padded": model(("Pad", ["x", "p"], ["y"]), x=np.ones(4, np.float32), p=np.array([0, HUGE])),
}


@pytest.mark.parametrize("name", NOT_IMPORTED)
def test_refused_when_imported(name):
    with bounded(), pytest.raises(trivium.Error) as raised:
        trivium.from_onnx(NOT_IMPORTED[name])
    assert raised.value.inside is not None


@pytest.mark.parametrize("name", NOT_COMPILED)
def test_refused_when_compiled(name):
    with bounded():
        module = trivium.from_onnx(NOT_COMPILED[name])
    assert len(str(module)) < 2000
    with bounded(), pytest.raises(trivium.CompileError, match=r"bytes \(\d+ TB\); expected at most"):
        trivium.compile(module)
