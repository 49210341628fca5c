"""Deliberate mistakes are found: the op that is wrong, and a small program that shows it."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trivium
from tests.debug import planted
from trivium.cli import main
from trivium.debug import arguments_of, compare, difference, failure, minify
from trivium.debug.minify import WRONG
from trivium.ir import ops
from trivium.ir.errors import Error

PROGRAM = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scale = stablehlo.constant dense<[1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]> : tensor<8xf32>
  %0 = stablehlo.add %x, %y : tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4x8xf32>
  %3 = stablehlo.tanh %2 : tensor<4x8xf32>
  %4 = stablehlo.subtract %3, %x : tensor<4x8xf32>
  %5 = stablehlo.floor %4 : tensor<4x8xf32>
  %6 = stablehlo.exponential %5 : tensor<4x8xf32>
  %7 = stablehlo.logistic %6 : tensor<4x8xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %9 = stablehlo.sine %7 : tensor<4x8xf32>
  return %8, %9 : tensor<4xf32>, tensor<4x8xf32>
}
"""

Plant = Callable[[pytest.MonkeyPatch], None]

MISTAKES: dict[str, tuple[Plant, str]] = {
    "wrong rule of tanh": (lambda m: planted.wrong_rule(m, ops.Tanh), "stablehlo.tanh"),
    "wrong rewrite": (planted.wrong_rewrite, "stablehlo.logistic"),
    "wrong lowering": (planted.wrong_lowering, "stablehlo.reduce"),
    "wrong machine code": (planted.wrong_machine_code, "stablehlo.sine"),
    "wrong rule of add": (lambda m: planted.wrong_rule(m, ops.Add), "stablehlo.add"),
    "wrong fusion": (lambda m: planted.wrong_rule(m, ops.Tanh, planted.is_used_once), "stablehlo.tanh"),
    "wrong fusion later": (lambda m: planted.wrong_rule(m, ops.Exponential, planted.is_used_once), "stablehlo.exp"),
    "swapped operands": (lambda m: planted.wrong_pass(m, planted.swapped), "stablehlo.subtract"),
    "wrong constant": (lambda m: planted.wrong_pass(m, planted.doubled), "stablehlo.constant"),
    "forgotten op": (lambda m: planted.wrong_pass(m, planted.forgotten), "stablehlo.floor"),
}


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliberate mistakes are not part of a program's key."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")


@pytest.mark.parametrize(("plant", "op"), MISTAKES.values(), ids=MISTAKES.keys())
def test_the_wrong_op_is_named(monkeypatch: pytest.MonkeyPatch, plant: Plant, op: str) -> None:
    module = trivium.parse(PROGRAM)
    plant(monkeypatch)
    found = compare(module, *arguments_of(module.main))
    assert found is not None
    assert op in found.op
    assert found.difference.count > 0
    assert f"expected {found.difference.expected}" in str(found)


@pytest.mark.parametrize(("plant", "op"), MISTAKES.values(), ids=MISTAKES.keys())
def test_failing_programs_become_small(monkeypatch: pytest.MonkeyPatch, plant: Plant, op: str, tmp_path: Path) -> None:
    plant(monkeypatch)
    smallest, how = minify(trivium.parse(PROGRAM), seconds=20)
    body = list(smallest.main.body.block)
    assert how == WRONG
    assert len(body) - 1 <= 3
    assert op in str(smallest)
    smallest.save(tmp_path / "small.mlir")
    again = trivium.load(tmp_path / "small.mlir")
    assert failure(again) == WRONG  # the file alone shows the mistake
    monkeypatch.undo()
    assert failure(again) is None


def test_nothing_is_found_in_correct_programs() -> None:
    module = trivium.parse(PROGRAM)
    assert compare(module, *arguments_of(module.main)) is None
    with pytest.raises(Error, match="gives the right results"):
        minify(module)


def test_programs_without_random_arguments_are_not_called_right() -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    with pytest.raises(Error, match="expected a tensor of static shape"):
        minify(trivium.parse(text))


def test_errors_of_the_compiler_become_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setitem(planted.ELEMENT, ops.Floor, lost)
    smallest, how = minify(trivium.parse(PROGRAM), seconds=20)
    assert how == "KeyError in lost"
    assert len(list(smallest.main.body.block)) == 2


@pytest.mark.parametrize(
    ("ours", "expected", "differs"),
    [
        (1.0, 1.0, False),
        (np.nan, np.nan, False),
        (np.inf, np.inf, False),
        (np.inf, -np.inf, True),
        (np.nan, 1.0, True),
        (1.0, np.nan, True),
        (1.00001, 1.0, False),
        (1.01, 1.0, True),
        (0.0, 0.0, False),
        (1e-30, 0.0, True),
    ],
)
def test_differences(ours: float, expected: float, differs: bool) -> None:
    found = difference(np.array([ours], np.float32), np.array([expected], np.float32))
    assert (found is not None) == differs


def test_integers_must_be_equal() -> None:
    found = difference(np.array([1, 2, 4]), np.array([1, 2, 3]))
    assert str(found) == "4 at [2], expected 3; 1 of 3 elements differ"


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*words: object) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["debug", *map(str, words)])
        return result.exit_code, result.output

    program, small = tmp_path / "program.mlir", tmp_path / "small.mlir"
    program.write_text(PROGRAM)
    assert run("accuracy", program) == (0, "The results are right, within the tolerance.\n")
    planted.wrong_rule(monkeypatch, ops.Tanh)
    code, text = run("accuracy", program)
    assert code == 1
    assert "stablehlo.tanh" in text
    assert f"from:  {program}:8" in text
    code, text = run("minify", program, "-o", small, "--seconds", 20)
    assert (code, text) == (0, f"{small}: 1 ops, wrong results\n")
    assert run("accuracy", small)[0] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no function 'model'"),
        ("def model(): return 3", "expected a tuple: the model, then its arguments"),
        ("def model():\n    return 1 / 0", "model.py:2 raised ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "model.py:2 raised SystemExit: 3"),
        ("def model(x): return 3", "model.py raised TypeError: model() missing 1 required positional argument: 'x'"),
    ],
)
def test_wrong_targets_are_errors(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "model.py").write_text(content)
    result = CliRunner().invoke(main, ["debug", "accuracy", f"{tmp_path / 'model.py'}:model"])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.torch
def test_a_wrong_import_from_pytorch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from trivium.importers.pytorch.graph import rule

    text = "import torch\ndef model():\n    torch.manual_seed(0)\n    return (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)), torch.ones(2, 4))\n"  # noqa: E501
    (tmp_path / "model.py").write_text(text)
    assert compare(torch.nn.Linear(3, 3), torch.ones(2, 3)) is None
    monkeypatch.setitem(rule._rules, "aten.tanh.default", rule._rules["aten.sin.default"])
    result = CliRunner().invoke(main, ["debug", "accuracy", f"{tmp_path / 'model.py'}:model"])
    assert result.exit_code == 1, result.output
    assert "aten.tanh.default" in result.output
    assert "while: importing from PyTorch" in result.output


@pytest.mark.onnx
def test_a_wrong_import_from_onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from trivium.importers.onnx.graph import rule

    text = """
<ir_version: 9, opset_import: ["" : 18]>
model (float[n, 3] x) => (float[n, 3] y, float[1] most) {
    s = Sinh (x)
    t = Tanh (s)
    u = Add (t, x)
    y = Mul (u, u)
    values, indices = TopK <axis = 1> (y, one)
    most = ReduceMax <keepdims = 0> (values, axis)
}
"""
    text = text.replace("{", "<int64[1] one = {1}, int64[1] axis = {0}> {", 1)
    model, x = onnx.parser.parse_model(text), np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    assert compare(model, x) is None
    planted.wrong_rule(monkeypatch, ops.Tanh)
    found = compare(model, x)
    assert found is not None
    assert (found.during, "stablehlo.tanh" in found.op) == ("running the compiled program", True)
    monkeypatch.undo()
    monkeypatch.setitem(rule._rules, "Tanh", rule._rules["Sin"])
    found = compare(model, x)
    assert found is not None
    assert found.op == "t = Tanh(s)"
    assert found.during == "importing from ONNX"


@pytest.mark.torch
def test_a_wrong_rule_under_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    planted.wrong_rule(monkeypatch, ops.Tanh)
    found = compare(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.ones(2, 4))
    assert found is not None
    assert "stablehlo.tanh" in found.op
    assert found.during == "running the compiled program"


@pytest.mark.torch
def test_wrong_results_are_reported_even_if_each_op_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    planted.wrong_rule(monkeypatch, ops.Tanh)
    monkeypatch.setattr(sys.modules[compare.__module__], "first_wrong_op", lambda *args, **options: None)
    found = compare(torch.nn.Tanh(), torch.ones(2))
    assert found is not None
    assert found.op.startswith("return")
    assert found.difference.count == 2


@pytest.mark.jax
def test_a_wrong_import_from_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    from trivium.importers.jax.graph import rule

    def function(x):
        return jax.numpy.cos(jax.numpy.tanh(x @ x) * 2)

    x = jax.numpy.arange(9.0, dtype=jax.numpy.float32).reshape(3, 3) / 10
    assert compare(function, x) is None
    monkeypatch.setitem(rule._rules, "tanh", rule._rules["sin"])
    found = compare(function, x)
    assert found is not None
    assert "tanh" in found.op
    assert Path(__file__).name in found.source
    assert found.during == "importing from JAX"


def tensorflow_model():
    """A function with a variable, shapes that are computed, a function that it calls, and a loop."""
    tf = pytest.importorskip("tensorflow")
    tf.random.set_seed(0)
    kernel, count = tf.Variable(tf.random.normal((4, 4)) / 4), tf.Variable(0)

    @tf.function
    def inner(x):
        return tf.tanh(x @ kernel) + 1

    @tf.function
    def model(x):
        count.assign_add(1)
        x = inner(tf.reshape(x, (tf.shape(x)[0], 4)))
        for _ in tf.range(3):
            x = tf.cos(x) + tf.cast(count, tf.float32)
        return tf.nn.softmax(x), tf.argmax(x, 1)

    return model, count


@pytest.mark.tensorflow
def test_functions_of_tensorflow_are_right() -> None:
    tf = pytest.importorskip("tensorflow")
    model, count = tensorflow_model()
    assert compare(model, tf.ones((2, 2, 2))) is None
    assert count.numpy() == 0


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("right", "wrong"), [("Tanh", "Sin"), ("Cos", "Sin"), ("Softmax", "LogSoftmax"), ("ArgMax", "ArgMin")]
)
def test_a_wrong_import_from_tensorflow(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    tf = pytest.importorskip("tensorflow")
    from trivium.importers.tensorflow.graph import rule

    model, _ = tensorflow_model()
    monkeypatch.setitem(rule._rules, right, rule._rules[wrong])
    found = compare(model, tf.reshape(tf.range(8.0), (2, 2, 2)) / 8)
    assert found is not None
    assert found.op.split(" = ")[1].startswith(f"{right}(")
    assert Path(__file__).name in found.source
    assert found.difference.ours != found.difference.expected
    assert found.during == "importing from TensorFlow"


@pytest.mark.tensorflow
def test_a_wrong_rule_under_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    tf = pytest.importorskip("tensorflow")
    tf.keras.utils.set_random_seed(3)
    layers = [tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(3, activation="tanh")]
    model = tf.keras.Sequential([tf.keras.Input((5,)), *layers])
    assert compare(model, tf.ones((2, 5))) is None
    planted.wrong_rule(monkeypatch, ops.Tanh)
    found = compare(model, tf.ones((2, 5)))
    assert found is not None
    assert "stablehlo.tanh" in found.op
    assert found.during == "running the compiled program"
