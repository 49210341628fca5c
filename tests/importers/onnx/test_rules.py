"""Each rule against ONNX's own reference evaluator: a node, its inputs, and the operator set in which it is tested."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import trivium

pytestmark = pytest.mark.onnx

OPSET = 21


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


X, Y, POSITIVE, UNIT = floats(3, 4), floats(3, 4, seed=1), np.abs(floats(3, 4)) + 0.5, np.clip(floats(3, 4), -0.9, 0.9)
IMAGE, KERNEL = floats(2, 4, 7, 6), floats(6, 4, 3, 3)
NATURALS = np.array([[5, -3, 7], [2, -8, 1]], np.int32)
TRUTHS = X > 0


def case(op, *inputs, outputs=1, opset=OPSET, fixed=(), **attributes):
    """`fixed` are the inputs that become initializers: shapes, axes and similar ones."""
    return pytest.param(op, inputs, outputs, opset, set(fixed), attributes, id=f"{op}-{len(inputs)}-{len(attributes)}")


CASES = [
    *(case(op, X) for op in ("Abs", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Neg", "Round", "Sigmoid", "Sign")),
    *(
        case(op, X)
        for op in ("Sin", "Sinh", "Tan", "Tanh", "Atan", "Asinh", "Relu", "Identity", "Softplus", "Softsign")
    ),
    *(case(op, X) for op in ("LeakyRelu", "Elu", "Celu", "Selu", "HardSigmoid", "HardSwish", "Mish", "Reciprocal")),
    *(case(op, POSITIVE) for op in ("Log", "Sqrt")),
    *(case(op, UNIT) for op in ("Acos", "Asin", "Atanh")),
    case("Acosh", POSITIVE + 1),
    case("Gelu", X),
    case("Gelu", X, approximate="tanh"),
    case("PRelu", X, floats(4)),
    *(case(op, X, Y) for op in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less")),
    *(case(op, X, Y, X * 2) for op in ("Max", "Min", "Sum", "Mean")),
    *(case(op, TRUTHS, Y > 0) for op in ("And", "Or", "Xor")),
    *(case(op, NATURALS, NATURALS[::-1].copy()) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod", "Div")),
    case("Not", TRUTHS),
    case("BitwiseNot", NATURALS),
    case("BitShift", NATURALS.astype(np.uint32), np.full((2, 3), 2, np.uint32), direction="LEFT"),
    case("Mod", X, POSITIVE, fmod=1),
    case("Pow", POSITIVE, Y),
    case("Pow", X, ints(2)),
    case("IsNaN", np.array([1, np.nan], np.float32)),
    case("IsInf", np.array([1, np.inf, -np.inf], np.float32), detect_negative=0),
    case("Where", TRUTHS, X, Y),
    case("Clip", X, np.float32(-0.5), np.float32(0.5)),
    case("Cast", X, to=TensorProto.INT32),
    case("Cast", X, to=TensorProto.BOOL),
    case("CastLike", X, NATURALS),
    *(case(op, X, axis=axis) for op in ("Softmax", "LogSoftmax") for axis in (0, -1)),
    case("ConstantOfShape", ints(2, 3), fixed=[0], value=numpy_helper.from_array(np.array([7], np.int32))),
    *(case(op, X) for op in ("Shape", "Size", "EyeLike")),
    case("Shape", IMAGE, start=1, end=3),
    case("Range", np.int64(2), np.int64(11), np.int64(3), fixed=[0, 1, 2]),
    case("Reshape", IMAGE, ints(0, -1, 6), fixed=[1]),
    case("Flatten", IMAGE, axis=2),
    case("Squeeze", X[None, :, None], ints(0, 2), fixed=[1]),
    case("Unsqueeze", X, ints(0, -1), fixed=[1]),
    case("Transpose", IMAGE, perm=[2, 0, 3, 1]),
    case("Transpose", X),
    case("Expand", X, ints(2, 1, 4), fixed=[1]),
    case("Tile", X, ints(2, 3), fixed=[1]),
    case("Concat", X, Y, axis=-1),
    case("Split", X, ints(1, 3), outputs=2, fixed=[1], axis=1),
    case("Split", X, outputs=3, axis=1, num_outputs=3),
    case("Slice", X, ints(0, -1), ints(2, -5), ints(0, 1), ints(1, -2), fixed=[1, 2, 3, 4]),
    case("Pad", X, ints(1, 0, 2, 1), np.float32(5), fixed=[1]),
    *(case("Pad", X, ints(1, 2, 0, 1), fixed=[1], mode=mode) for mode in ("reflect", "edge", "wrap")),
    *(case("DepthToSpace", floats(1, 8, 2, 3), blocksize=2, mode=mode) for mode in ("DCR", "CRD")),
    case("Gather", X, ints(0, -1, 2), axis=1),
    case("GatherElements", X, np.array([[0, 1, -1, 2]]), axis=0),
    case("GatherND", IMAGE, np.array([[0, 1], [1, -1]])),
    case("GatherND", IMAGE, np.array([[1], [0]]), batch_dims=1),
    case("ScatterElements", X, np.array([[0, 2, 1, 1]]), floats(1, 4, seed=5), axis=0),
    case("ScatterElements", X, np.array([[0, 2]]), floats(1, 2, seed=5), axis=1, reduction="add"),
    case("ScatterND", X, np.array([[0], [2]]), floats(2, 4, seed=5)),
    case("OneHot", ints(0, 2, -1), np.int64(4), np.array([0, 1], np.float32), fixed=[1]),
    *(case("Trilu", floats(4, 5), np.int64(1), fixed=[1], upper=upper) for upper in (0, 1)),
    *(case(f"Reduce{kind}", X, ints(1), fixed=[1]) for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2")),
    *(case(f"Reduce{kind}", X, ints(0), fixed=[1], keepdims=0) for kind in ("SumSquare", "LogSumExp")),
    case("ReduceLogSum", POSITIVE, ints(0), fixed=[1]),
    case("ReduceMean", X, opset=13, axes=[1], keepdims=0),
    case("ReduceSum", X),
    *(case(op, X, axis=1, keepdims=0) for op in ("ArgMax", "ArgMin")),
    case("ArgMax", np.array([[1, 3, 3]], np.float32), axis=1, select_last_index=1),
    case("TopK", X, ints(2), outputs=2, fixed=[1]),
    case("TopK", X, ints(2), outputs=2, fixed=[1], axis=0, largest=0),
    case("CumSum", X, np.int64(1), fixed=[1]),
    case("CumSum", X, np.int64(0), fixed=[1], exclusive=1, reverse=1),
    case("MatMul", floats(2, 3, 4), floats(4, 5)),
    case("MatMul", floats(4), floats(4, 5)),
    case("Gemm", X, floats(3, 5), floats(5), alpha=0.5, beta=2.0, transA=1),
    case("Einsum", floats(2, 3, 4), floats(2, 5, 4), equation="bij,bkj->bik"),
    case("Conv", IMAGE, KERNEL, floats(6), pads=[1, 0, 2, 1], strides=[2, 1]),
    case("Conv", IMAGE, KERNEL, dilations=[2, 1], auto_pad="VALID"),
    case("Conv", IMAGE, floats(8, 2, 3, 3), group=2, auto_pad="SAME_UPPER", strides=[2, 2]),
    case("Conv", floats(1, 3, 9), floats(2, 3, 4)),
    case("ConvTranspose", floats(1, 4, 3, 3), floats(4, 2, 3, 3), floats(2), strides=[2, 2], pads=[1, 1, 0, 0]),
    case("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
    case("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    *(case(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool")),
    case("BatchNormalization", IMAGE, floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.1),
    case("LayerNormalization", X, floats(4), floats(4)),
    case("InstanceNormalization", IMAGE, floats(4), floats(4)),
    case("GroupNormalization", IMAGE, floats(4), floats(4), num_groups=2),
    case("Dropout", X),
]


def make_model(op, inputs, outputs, opset, fixed, attributes):
    names = [f"x{index}" for index in range(len(inputs))]
    node = helper.make_node(op, names, [f"y{index}" for index in range(outputs)], **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), np.shape(array))
        for index, (name, array) in enumerate(zip(names, inputs, strict=True))
        if index not in fixed
    ]
    constants = [numpy_helper.from_array(np.asarray(inputs[index]), names[index]) for index in sorted(fixed)]
    results = [helper.make_empty_tensor_value_info(f"y{index}") for index in range(outputs)]
    graph = helper.make_graph([node], "test", infos, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def compiled(module, *arguments):
    return trivium.compile(module)(*arguments)


@pytest.mark.parametrize("run", [trivium.evaluate, compiled], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(("op", "inputs", "outputs", "opset", "fixed", "attributes"), CASES)
def test_rule(op, inputs, outputs, opset, fixed, attributes, run):
    model = make_model(op, inputs, outputs, opset, fixed, attributes)
    given = [array for index, array in enumerate(inputs) if index not in fixed]
    feeds = {info.name: np.asarray(array) for info, array in zip(model.graph.input, given, strict=True)}
    expected = ReferenceEvaluator(model).run(None, feeds)
    module = trivium.from_onnx(model)
    module.verify()
    for ours, theirs in zip(run(module, *given), map(np.asarray, expected), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def branch(name, nodes, result):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, [3])])


def test_if_and_loop():
    then_graph = branch("yes", [helper.make_node("Neg", ["x"], ["a"])], "a")
    else_graph = branch("no", [helper.make_node("Abs", ["x"], ["b"])], "b")
    chosen = helper.make_node("If", ["p"], ["z"], then_branch=then_graph, else_branch=else_graph)
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["again"]), helper.make_node("Add", ["v", "x"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [3]),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []),
         helper.make_tensor_value_info("w", TensorProto.FLOAT, [3])],
    )  # fmt: skip
    turns = helper.make_node("Constant", [], ["n"], value=numpy_helper.from_array(np.array(4)))
    looped = helper.make_node("Loop", ["n", "", "z"], ["y"], body=body)
    inputs = [helper.make_tensor_value_info("p", TensorProto.BOOL, []),
              helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]  # fmt: skip
    graph = helper.make_graph([chosen, turns, looped], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    run = trivium.compile(trivium.from_onnx(model))
    x = floats(3)
    np.testing.assert_allclose(run(np.array(True), x)[0], 3 * x, rtol=1e-6)
    np.testing.assert_allclose(run(np.array(False), x)[0], abs(x) + 4 * x, rtol=1e-6)


def test_unsupported_ops_are_named_at_once():
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["a"], name="first"),
        helper.make_node("ImageDecoder", ["a"], ["b"]),
        helper.make_node("StringSplit", ["b"], ["y", "z"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")])
    with pytest.raises(trivium.UnsupportedOpError, match=r"ImageDecoder \(2 times\), first at first[\s\S]*StringSplit"):
        trivium.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]))


def test_an_unknown_attribute_is_refused():
    with pytest.raises(trivium.UnsupportedOpError, match="Relu: output 1"):
        trivium.from_onnx(make_model("Relu", [X], 2, OPSET, set(), {}))


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"not a model", lambda b: b""])
def test_a_damaged_file_is_refused(damage, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(damage(make_model("Relu", [X], 1, OPSET, set(), {}).SerializeToString()))
    with pytest.raises(trivium.Error, match=r"model\.onnx"):
        trivium.from_onnx(path)
