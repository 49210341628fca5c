"""Importers keep the part of the model that an op belongs to, as its framework names it."""

from pathlib import Path

import pytest

import trivium
from trivium.ir.func import Module
from trivium.ir.module_path import module_path


def paths(module: Module) -> set[str]:
    return {module_path(op.location) for op in module.main.body.walk()} - {""}


@pytest.mark.torch
def test_submodules_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model = torch.nn.Sequential(inner, torch.nn.Linear(2, 2))
    assert paths(trivium.from_torch(model, (torch.ones(1, 2),))) == {"0.0", "0.1", "1"}
    torch.export.save(torch.export.export(model, (torch.ones(1, 2),)), tmp_path / "model.pt2")
    assert paths(trivium.load(tmp_path / "model.pt2")) == {"0.0", "0.1", "1"}


@pytest.mark.jax
def test_scopes_of_jax() -> None:
    jax = pytest.importorskip("jax")

    def block(x):
        with jax.named_scope("block"):
            return jax.numpy.tanh(x) + jax.nn.relu(x)

    found = paths(trivium.from_jax(lambda x: block(block(x)), jax.numpy.ones(3)))
    assert found
    assert all(path.startswith("block") for path in found)


@pytest.mark.tensorflow
def test_scopes_of_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def function(x):
        with tf.name_scope("outer"), tf.name_scope("inner"):
            return tf.tanh(x) * 2.0

    assert paths(trivium.from_tensorflow(function, tf.ones(3))) == {"outer/inner"}


@pytest.mark.onnx
def test_scopes_of_onnx() -> None:
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Tanh(x) }'
    model = onnx.parser.parse_model(text)
    model.graph.node[0].name = "/encoder/layer.0/Tanh"
    assert paths(trivium.from_onnx(model)) == {"encoder/layer.0"}
