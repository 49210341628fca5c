"""Whole models: imported, verified, interpreted, compiled, and compared with PyTorch."""

import pytest

torch = pytest.importorskip("torch")

import trivium
from tests.importers.pytorch.models import MODELS, build, difference, outputs_of

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    if name not in ("lstm", "cnn"):
        pytest.importorskip("transformers")
    model, inputs = build(name)
    module = trivium.from_torch(model, inputs)
    module.verify()
    with torch.no_grad():
        expected = outputs_of(model(*inputs))
    arrays = [x.numpy() for x in inputs]
    for run in (lambda *given: trivium.evaluate(module, *given), trivium.compile(module)):
        found = run(*arrays)
        assert len(found) == len(expected)
        assert max(map(difference, found, expected)) < 1e-4
