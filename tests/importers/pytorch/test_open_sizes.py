"""Functions of tensors all of whose sizes are open, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import trivium

torch = pytest.importorskip("torch")
from torch.export import Dim, export
from torch.nn import functional

from tests.importers.pytorch.test_bounds import drawn, np_list

pytestmark = pytest.mark.torch

aten = torch.ops.aten


class Applied(torch.nn.Module):
    """A function of any number of tensors."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def compare(function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> None:
    sizes = tuple(dict.fromkeys(range(x.dim()), Dim.AUTO) for x in calls[0])
    module = trivium.from_torch(export(Applied(function), tuple(calls[0]), dynamic_shapes=(sizes,)))
    assert all(None in kind.shape for kind in module.main.function_type.inputs)
    run = trivium.compile(module)
    for args in calls:
        for found, wanted in zip(np_list(run(*(x.numpy() for x in args))), np_list(function(*args)), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def gradients(x: Any, weight: Any, is_transposed: bool) -> Any:
    forward = functional.conv_transpose2d if is_transposed else functional.conv2d
    grad = forward(x, weight, stride=2, padding=1) * 2
    settings = [2, 2], [1, 1], [1, 1], is_transposed, [0, 0], 1
    return aten.convolution_backward(grad, x, weight, None, *settings, [True, True, False])[:2]


OF_KERNELS: dict[str, Callable[..., Any]] = {
    "convolution": lambda x, w: functional.conv2d(x, w, w.sum((1, 2, 3)), 2, 1, (1, 2)),
    "convolution of the same size": lambda x, w: functional.conv2d(x, w.mT, padding="same"),
    "gradients": lambda x, w: gradients(x, w, False),
    "transposed": lambda x, w: functional.conv_transpose2d(x, w.transpose(0, 1), None, 2, 1, 1),
    "gradients of a transposed one": lambda x, w: gradients(x, w.transpose(0, 1), True),
}


@pytest.mark.parametrize("name", OF_KERNELS)
def test_kernels(name: str) -> None:
    shapes = (((2, 3, 12, 10), (4, 3, 3, 2)), ((1, 5, 9, 17), (6, 5, 5, 4)), ((3, 2, 8, 8), (2, 2, 1, 4)))
    compare(OF_KERNELS[name], [[drawn(*shape) for shape in pair] for pair in shapes])


def test_kernels_of_groups() -> None:
    def grouped(x: Any, w: Any) -> Any:
        filters = w.repeat(3, 1, 1, 1)[:, :1]
        return functional.conv2d(x, filters, groups=3), functional.conv_transpose2d(x, filters[:3], groups=3)

    compare(grouped, [(drawn(2, 3, 12, 10), drawn(4, 3, 3, 2)), (drawn(1, 3, 9, 17), drawn(2, 2, 5, 3))])


OF_MATRICES: dict[str, Callable[..., Any]] = {
    "incomplete gamma functions": lambda x: (
        torch.special.gammainc(x.abs() + 0.1, x.square()),
        torch.special.gammaincc(x.abs() + 0.1, x.square()),
    ),
    "Fourier transforms": lambda x: (torch.fft.fft(x, norm="forward").abs(), torch.fft.ifft(x, dim=0).abs()),
    "Fourier transforms of rows and columns": lambda x: (torch.fft.fft2(x, norm="ortho").real, torch.fft.rfft2(x).imag),
    "inverse Fourier transforms": lambda x: (
        torch.fft.irfft(torch.fft.rfft(x)),
        torch.fft.irfftn(torch.fft.fft(x), s=x.shape),
        torch.fft.hfft(x.to(torch.complex64), norm="ortho"),
    ),
    "distances of all pairs": lambda x: (functional.pdist(x), functional.pdist(x, 1), torch.cdist(x, x[1:])),
    "of integers": lambda x: [f((x * 9).int()) for f in (torch.isinf, torch.isfinite)] + [(x > 0).signbit()],
    "the bits": lambda x: (x.view(torch.int16), x.repeat(1, 2).view(torch.int64)),
    "padded by its edges": lambda x: aten.replication_pad1d_backward(functional.pad(x, (2, 3), "replicate"), x, [2, 3]),
    "repeated": lambda x: torch.repeat_interleave((x[:, 0] * 3).abs().long()),
    "medians": lambda x: (x.median(), x.nanmedian(), x[:, ::3].median(), (x * 9).int().median(), *x.median(0)),
    "in a set": lambda x: (torch.isin(x.round(), x[0].round()), torch.isin(2, x.round(), invert=True)),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_matrices(name: str) -> None:
    compare(OF_MATRICES[name], [(drawn(*shape),) for shape in ((3, 12), (5, 7), (4, 16))])
