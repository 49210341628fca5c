"""Graphs from files whose constants represent arrays of any size: TensorFlow does not compute them while it builds the
graph, and neither does the importer."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
from tests.importers.tensorflow.graphs import constant, graph_of, node, placeholder
from tests.limits import bounded

pytestmark = pytest.mark.tensorflow

HUGE = 3 * 10**9
X = placeholder("x", [4])


def reshaped(*nodes: Any) -> tf.compat.v1.GraphDef:
    """Returns `x` in a shape that is the first element of the node `big`."""
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    return graph_of(
        X,
        *nodes,
        constant("zero", [0]),
        constant("one", [1]),
        node("flat", "Reshape", "big", "minus", T=tf.int64, Tshape=tf.int64),
        constant("minus", [-1]),
        node("size", "StridedSlice", "flat", "zero", "one", "one", T=tf.int64, Index=tf.int64, **masks),
        node("y", "Reshape", "x", "size", T=tf.float32, Tshape=tf.int64),
    )


def doubled(count: int) -> list[Any]:
    """Returns nodes that concatenate a constant with itself repeatedly."""
    steps = [constant("big0", np.arange(1024)), constant("axis", 0)]
    for i in range(1, count + 1):
        name = f"big{i}" if i < count else "big"
        steps.append(node(name, "ConcatV2", f"big{i - 1}", f"big{i - 1}", "axis", N=2, T=tf.int64, Tidx=tf.int64))
    return steps


def bounds(limit: int) -> list[Any]:
    return [constant("start", 0), constant("limit", limit), constant("delta", 1)]


GROWING = {
    "range": [*bounds(HUGE), node("big", "Range", "start", "limit", "delta", Tidx=tf.int64)],
    "fill": [
        constant("dims", [HUGE]),
        constant("value", 4),
        node("big", "Fill", "dims", "value", T=tf.int64, index_type=tf.int64),
    ],
    "tile": [
        constant("few", [4, 4]),
        constant("many", [HUGE]),
        node("big", "Tile", "few", "many", T=tf.int64, Tmultiples=tf.int64),
    ],
    "broadcast": [
        constant("few", [4]),
        constant("many", [HUGE]),
        node("big", "BroadcastTo", "few", "many", T=tf.int64, Tidx=tf.int64),
    ],
    "pad": [
        constant("few", [4]),
        constant("edges", [[0, HUGE]]),
        node("big", "Pad", "few", "edges", T=tf.int64, Tpaddings=tf.int64),
    ],
    "doubled": doubled(30),
    "outer sum": [
        constant("column", np.arange(60_000).reshape(-1, 1)),
        constant("row", np.arange(60_000)),
        node("big", "AddV2", "column", "row", T=tf.int64),
    ],
    "size of an argument": [
        placeholder("large", [HUGE]),
        placeholder("point", []),
        node("rank0", "Rank", "point", T=tf.float32),
        node("rank1", "Rank", "x", T=tf.float32),
        node("start", "Cast", "rank0", SrcT=tf.int32, DstT=tf.int64),
        node("delta", "Cast", "rank1", SrcT=tf.int32, DstT=tf.int64),
        node("limit", "Size", "large", T=tf.float32, out_type=tf.int64),
        node("big", "Range", "start", "limit", "delta", Tidx=tf.int64),
    ],
}


@pytest.mark.parametrize("name", GROWING)
def test_constants_are_not_computed_whatever_their_size(name: str) -> None:
    with bounded(), pytest.raises(trivium.Error, match=r"Reshape|elements"):
        trivium.from_tensorflow(reshaped(*GROWING[name]))


def test_nor_are_they_in_functions() -> None:
    graph = reshaped(*GROWING["range"])
    body = tf.compat.v1.GraphDef()
    body.CopyFrom(graph)
    del body.node[0]  # the argument
    function = graph.library.function.add(ret={"y": "y:output:0"})
    function.signature.name = "inner"
    function.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
    function.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
    outputs = {"Const": "output", "Range": "output", "StridedSlice": "output", "Reshape": "output"}
    ops = {x.name: outputs[x.op] for x in body.node}
    for x in body.node:
        x.input[:] = [f"{source}:{ops[source]}:0" if source in ops else source for source in x.input]
    function.node_def.extend(body.node)
    del graph.node[1:]
    call = node("call", "PartitionedCall", "x")
    call.attr["f"].func.name = "inner"
    call.attr["Tin"].list.type.append(tf.float32.as_datatype_enum)
    call.attr["Tout"].list.type.append(tf.float32.as_datatype_enum)
    graph.node.append(call)
    with bounded(), pytest.raises(trivium.Error, match="shape has a value computed at run time"):
        trivium.from_tensorflow(graph)


def test_small_constants_are_computed_here() -> None:
    few = [*bounds(9), constant("three", 4), node("few", "Range", "three", "limit", "delta", Tidx=tf.int64)]
    module = trivium.from_tensorflow(reshaped(*few, node("big", "Identity", "few", T=tf.int64)))
    x = np.arange(4, dtype=np.float32)
    (y,) = trivium.evaluate(module, x)
    np.testing.assert_array_equal(y, x)


def test_a_large_range_is_a_computation() -> None:
    count = (1 << 20) + 3
    sums = node("y", "Sum", "r", "axis", T=tf.float32, Tidx=tf.int64)
    numbers = [
        constant("start", 0.5, tf.float32),
        constant("limit", count, tf.float32),
        constant("delta", 1, tf.float32),
    ]
    ramp = node("r", "Range", "start", "limit", "delta", Tidx=tf.float32)
    module = trivium.from_tensorflow(graph_of(*numbers, ramp, constant("axis", [0]), sums))
    assert len(str(module)) < 2000
    (y,) = trivium.evaluate(module)
    np.testing.assert_allclose(y, (np.arange(count) + 0.5).sum(), rtol=1e-3)


@pytest.mark.parametrize(("delta", "message"), [(0, "delta has 0"), (-1, "delta has -1")])
def test_ranges_that_lead_nowhere(delta: int, message: str) -> None:
    steps = [constant("start", 0), constant("limit", 4), constant("delta", delta)]
    graph = reshaped(*steps, node("big", "Range", "start", "limit", "delta", Tidx=tf.int64))
    with pytest.raises(trivium.Error, match=message):
        trivium.from_tensorflow(graph)
