"""PyTorch models by way of `torch.onnx.export`: an MLP, ResNet and BERT, through Trivium against PyTorch."""

import contextlib
import io

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch import nn

import trivium

pytestmark = [pytest.mark.onnx, pytest.mark.torch]


def mlp():
    return nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5)), torch.randn(7, 20)


def resnet():
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1])
    return transformers.ResNetModel(config), torch.randn(2, 3, 64, 64)


def bert():
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256
    )
    return transformers.BertModel(config), torch.randint(0, 200, (2, 16))


@pytest.mark.parametrize("make", [mlp, resnet, bert])
def test_model(make, tmp_path):
    torch.manual_seed(0)
    model, example = make()
    model.eval()
    path = tmp_path / "model.onnx"
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, (example,), str(path), dynamo=True, verbose=False)
    module = trivium.load(path)
    module.verify()
    with torch.no_grad():
        expected = model(example)
    expected = expected if isinstance(expected, torch.Tensor) else expected[0]
    result = trivium.compile(module)(example.numpy())[0]
    scale = expected.abs().max().item()
    np.testing.assert_allclose(result, expected.numpy(), rtol=0, atol=1e-4 * scale)
