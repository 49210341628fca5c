"""Tensors whose dimensions are in another order in memory are passed and returned as they are, also between a forward
and a backward graph, and have PyTorch's strides."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from trivium.torch import variant

pytestmark = pytest.mark.torch


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
            *(nn.Conv2d(8, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        )
        self.end = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.body(x)
        return self.end(found.flatten(1)), torch.tanh(x).movedim(1, 3).mT


@pytest.mark.parametrize("narrow", [False, True], ids=["f32", "bf16"])
def test_training_copies_nothing(narrow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    plain = Network().to(memory_format=torch.channels_last)
    compiled = copy.deepcopy(plain)
    x = torch.randn(2, 3, 20, 22).to(memory_format=torch.channels_last)
    runs = []
    for model, run in ((plain, plain), (compiled, torch.compile(compiled, backend="trivium"))):
        if model is compiled:
            monkeypatch.setattr(variant, "_plain", lambda tensor: pytest.fail(f"{tensor.shape} is copied"))
            monkeypatch.setattr(variant, "laid_out", lambda tensor, strides: pytest.fail(f"{strides} are made"))
        given = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            results = run(given)
        sum(result.float().square().sum() for result in results).backward()
        runs.append([*results, given.grad, *(parameter.grad for parameter in model.parameters())])
    for wanted, found in zip(*runs, strict=True):
        assert found.dtype == wanted.dtype
        extents = [d for d in range(wanted.ndim) if wanted.shape[d] > 1]
        assert [found.stride(d) for d in extents] == [wanted.stride(d) for d in extents]
        scale = wanted.abs().max().item()
        assert (found - wanted).abs().max().item() <= (0.05 if narrow else 1e-5) * scale


def test_strides_of_results_that_pytorch_describes_otherwise() -> None:
    def many(x: torch.Tensor) -> list[torch.Tensor]:
        pooled = [
            *nn.functional.adaptive_max_pool2d(x, 2, return_indices=True),
            nn.functional.adaptive_max_pool3d(x, 2),
            nn.functional.interpolate(x, (3, 9), mode="bilinear", antialias=True),
        ]
        ones, two = torch.ones(2, 4, 5, 6), torch.tensor(2.0)
        quotients = [x // ones, x.mT // two, x.div(ones, rounding_mode="floor"), x.div(two, rounding_mode="trunc")]
        places = torch.arange(30).reshape(5, 6).expand(x.shape)
        rolled = [x.roll(1, 2), x.roll((1, -2), (1, 3)), x.roll(3), x.mT.roll(1, 0)]
        return [
            *pooled,
            *rolled,
            *quotients,
            nn.functional.max_unpool2d(x, places, 2),
            nn.functional.channel_shuffle(x, 2),
        ]

    for order in (torch.channels_last, torch.contiguous_format):
        torch._dynamo.reset()
        x = torch.randn(2, 4, 5, 6).to(memory_format=order)
        for found, wanted in zip(torch.compile(many, backend="trivium")(x), many(x), strict=True):
            torch.testing.assert_close(found, wanted)
            assert found.stride() == wanted.stride()
