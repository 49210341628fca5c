"""Programs of PyTorch's own libraries that bring ops of their own: the encoder in inference, grouped query attention,
derivatives of derivatives, tensors without dimensions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from tests.importers.pytorch.models import difference

pytestmark = pytest.mark.torch


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="trivium", fullgraph=True, **options)


def encoder(**options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}], ids=str)
def test_an_encoder_in_inference(options: dict[str, Any]) -> None:
    model, x = encoder(**options), torch.linspace(-1, 1, 48).reshape(2, 3, 8)
    with torch.no_grad():
        assert difference(compiled(model)(x), model(x)) < 1e-5


def test_an_encoder_with_padding() -> None:
    model, x = encoder(), torch.linspace(-1, 1, 48).reshape(2, 3, 8)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        ours, theirs = (run(x, src_key_padding_mask=padding) for run in (compiled(model), model))
    assert difference(ours, theirs) < 1e-5


def test_gradients_of_an_encoder_layer_for_batches_of_any_size() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    fast = compiled(layer, dynamic=True)
    for size in (2, 3, 5):
        gradients = []
        for run in (fast, layer):
            x = torch.linspace(-1, 1, size * 24).reshape(size, 3, 8).requires_grad_()
            layer.zero_grad()
            (run(x) * torch.linspace(-1, 1, x.numel()).reshape(x.shape)).sum().backward()
            gradients.append([x.grad, *(parameter.grad for parameter in layer.parameters())])
        assert max(map(difference, *gradients)) < 1e-4


MASKS = {
    "none": {},
    "causal": {"is_causal": True},
    "boolean": {"attn_mask": torch.arange(35).reshape(5, 7) % 3 > 0},
    "float": {"attn_mask": torch.linspace(-1, 1, 280).reshape(1, 8, 5, 7)},
    "scale": {"scale": 0.3, "dropout_p": 0.0},
}


@pytest.mark.parametrize("options", MASKS.values(), ids=MASKS)
def test_grouped_query_attention(options: dict[str, Any]) -> None:
    def function(query: Any, key: Any, value: Any) -> Any:
        return functional.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)

    results = []
    for run in (compiled(function), function):
        torch.manual_seed(1)
        inputs = [torch.randn(2, heads, length, 16, requires_grad=True) for heads, length in ((8, 5), (2, 7), (2, 7))]
        output = run(*inputs)
        output.square().sum().backward()
        results.append([output.detach(), *(x.grad for x in inputs)])
    assert max(map(difference, *results)) < 1e-5


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "jacrev": lambda x: torch.func.jacrev(lambda y: (y * y).sum(0))(x),
    "hessian": lambda x: torch.func.hessian(lambda y: (y**3).sum())(x[0]),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, torch.ones(4)),
    "diagonal_scatter above": lambda x: torch.diagonal_scatter(x, torch.arange(3.0), 2),
    "diagonal_scatter below": lambda x: torch.diagonal_scatter(x[None], torch.arange(3.0)[None], -1, 1, 2),
    "diagonal_scatter of others": lambda x: torch.diagonal_scatter(x[None], torch.ones(5, 1), 0, 0, 1),
    "index_fill without dimensions": lambda x: x[0, 0].index_fill(0, torch.tensor([0]), 2.0),
    "index_copy without dimensions": lambda x: x[0, 0].index_copy(0, torch.tensor([0]), torch.tensor([5.0])),
    "index_add without dimensions": lambda x: x[0, 0].index_add(0, torch.tensor(0), torch.tensor(5.0)),
    "gradient of replicate padding": lambda x: torch.func.grad(
        lambda y: (functional.pad(y[None], (2, -1, 1, 3), mode="replicate") ** 2).sum()
    )(x[None])[0],
    "index_reduce without dimensions": lambda x: x[0, 0].index_reduce(0, torch.tensor([0]), torch.tensor(5.0), "amax"),
    "negative replicate padding": lambda x: functional.pad(x[None], (2, -1), mode="replicate"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    ours, theirs = compiled(FUNCTIONS[name])(x), FUNCTIONS[name](x)
    assert ours.shape == theirs.shape
    assert difference(ours, theirs) < 1e-6


SINGULAR: dict[str, Callable[[Any], Any]] = {
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x),
    "solve of many": lambda x: torch.linalg.solve(torch.stack([torch.eye(3), x]), x),
    "cholesky": lambda x: torch.linalg.cholesky(x),
    "inv_ex": lambda x: torch.linalg.inv_ex(x, check_errors=True)[0],
}


@pytest.mark.parametrize("name", SINGULAR)
def test_factorizations_that_fail_raise_what_pytorch_raises(name: str) -> None:
    x, function = torch.diag(torch.tensor([1.0, -1.0, 0.0])), compiled(SINGULAR[name])
    with pytest.raises(torch.linalg.LinAlgError) as expected:
        SINGULAR[name](x)
    with pytest.raises(torch.linalg.LinAlgError) as found:
        function(x)
    assert str(found.value) == str(expected.value)


def test_denormal_numbers_are_kept_although_pytorch_flushes_them() -> None:
    small = torch.tensor([2.0**-9, 7 * 2.0**-9, 1]).to(torch.float8_e4m3fn)
    run = torch.compile(lambda x: x.float() * 3, backend="trivium")
    expected = run(small)
    assert expected.tolist() == [3 * 2.0**-9, 21 * 2.0**-9, 3]
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor always keeps denormal numbers")
    try:
        assert torch.equal(run(small), expected)
    finally:
        torch.set_flush_denormal(False)


FLUSHED = """
import numpy as np, torch, trivium
if torch.set_flush_denormal(True):
    text = "func.func @main(%x: tensor<2000000xf32>) -> tensor<2000000xf32> {\\n" \
        "%0 = stablehlo.add %x, %x : tensor<2000000xf32>\\n return %0 : tensor<2000000xf32>\\n}"
    run, x = trivium.compile(trivium.parse(text)), np.full(2000000, 1, np.int32).view(np.float32)
    for _ in range(10):
        assert (run(x)[0].view(np.int32) == 2).all()
"""


def test_so_are_they_on_threads_that_begin_later() -> None:
    """A thread begins with the mode of the one that starts it."""
    environment = os.environ | {"TRIVIUM_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", FLUSHED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_entries_after_the_last_offset_are_in_no_bag(mode: str) -> None:
    entries, offsets = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 4])

    def bags(weight: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
        return functional.embedding_bag(entries, weight, offsets, mode=mode, include_last_offset=True)

    ours = torch.randn(6, 3, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    found, wanted = compiled(bags)(ours, entries), bags(theirs, entries[:4])
    torch.testing.assert_close(found, wanted)
    found.square().sum().backward()
    wanted.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
