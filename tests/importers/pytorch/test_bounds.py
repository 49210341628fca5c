"""Exported programs with dynamic sizes, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import trivium

torch = pytest.importorskip("torch")
from torch import nn
from torch.export import Dim, ExportedProgram, export
from torch.nn import functional

from trivium.importers.pytorch import rule

pytestmark = pytest.mark.torch


class Shapes(nn.Module):
    """Shapes and numbers that follow from sizes."""

    def forward(self, x, y):
        z = (functional.layer_norm(x, (4,)) + y).reshape(-1, 2)
        parts = (z[1:], z[-3:], z[::2], z[2], z.t().repeat(1, 2), torch.cat([z, z * 2]), *x.split([1, 3], 1))
        made = (torch.arange(x.shape[0]), torch.ones(2, x.shape[0]), z.new_zeros(x.shape[0] + 1), torch.triu(x @ x.t()))
        found = (
            z.softmax(0),
            z.mean(0),
            x.sum(),
            z.amax(1),
            x.cumsum(0),
            torch.gather(x, 0, torch.zeros_like(x).long()),
        )
        return *parts, *made, *found, z.view(x.shape[0] * 2, 2) * x.shape[0], x[:, torch.tensor([0, -1])]


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.last = nn.Linear(16, 5)

    def forward(self, x):
        x = functional.max_pool2d(self.norm(self.convolution(x)).relu(), 2)
        return self.last(functional.adaptive_avg_pool2d(functional.avg_pool2d(x, 2, padding=1), 2).flatten(1))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(20, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, words):
        length = words.shape[1]
        x = self.words(words) + self.places(torch.arange(length))
        return self.layer(x, src_mask=torch.ones(length, length, dtype=torch.bool).triu(1))


class Recurrent(nn.Module):
    """An LSTM over both directions, then a GRU."""

    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(4, 3, bidirectional=True, batch_first=True)
        self.second = nn.GRU(6, 2, batch_first=True)

    def forward(self, x):
        return self.second(self.first(x)[0])


class Even(nn.Module):
    """Has two ways, of which the program has the one that was traced."""

    def forward(self, x):
        return x + 1 if x.shape[0] % 2 == 0 else x


def exported(model: nn.Module, sizes: Any, *args: Any) -> ExportedProgram:
    return export(model.eval(), args, dynamic_shapes=sizes)


def drawn(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def words(*shape: int) -> Any:
    return torch.randint(0, 11, shape, generator=torch.Generator().manual_seed(0))


ROWS = ({0: Dim.AUTO}, {0: Dim.AUTO})


@pytest.mark.parametrize(
    ("model", "sizes", "calls"),
    [
        (Shapes(), ROWS, [(drawn(rows, 4), drawn(rows, 4)) for rows in (6, 3, 9)]),
        (Images(), ({0: Dim.AUTO},), [(drawn(batch, 3, 32, 32),) for batch in (3, 5, 1)]),
        (Words(), ({0: Dim.AUTO, 1: Dim.AUTO},), [(words(3, 5),), (words(2, 7),)]),
        (Recurrent(), ({0: Dim.AUTO},), [(drawn(batch, 5, 4),) for batch in (3, 2)]),
    ],
    ids=["shapes", "images", "words", "recurrent"],
)
def test_open_sizes_stay_open(model: nn.Module, sizes: Any, calls: Sequence[tuple[Any, ...]]) -> None:
    module = trivium.from_torch(exported(model, sizes, *calls[0]))
    assert all(None in shape for shape in shapes_of(module.main.function_type.inputs))
    run = trivium.compile(module)
    for args in calls:
        given, expected = [x.numpy() for x in args], model(*args)
        for found, wanted in zip(np_list(run(*given)), np_list(expected), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


class Applied(nn.Module):
    """A function of one tensor, with the modules that it uses."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


OF_IMAGES = {
    "mean of windows": lambda x: functional.avg_pool2d(x, 3, 2, 1),
    "mean of windows without padding": lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "places of the largest": lambda x: functional.max_pool2d(x, 3, 2, return_indices=True),
    "parts": lambda x: functional.adaptive_avg_pool2d(x, (5, 3)),
    "parts of many numbers of 16 bits": lambda x: functional.adaptive_avg_pool2d(
        x[:1].bfloat16().repeat(1, 1, 60, 1), 2
    ).float(),
    "transposed convolution": nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2),
    "convolution of the same size": nn.Conv2d(4, 4, (3, 2), padding="same", dilation=2),
    "group normalization": nn.GroupNorm(2, 4),
    "standard deviation": lambda x: (x.std((0, 2)), x.var(2, correction=0)),
    "roll": lambda x: (x.roll(3, 0), x.roll((-1, 20), (2, 3))),
    "roll by a size": lambda x: (torch.fft.fftshift(x), x.roll(x.shape[2], 3)),
    "diagonals": lambda x: (x.diagonal(0, 2, 3), x.diagonal(1, 0, 2), x.diagonal(-2, 2, 3)),
    "sums at places": lambda x: torch.zeros(3, x.shape[2]).index_add(0, (x[:, 0, 0, 0] > 0).long(), x[:, 0, :, 0]),
    "counts": lambda x: torch.bincount((x[:, 0, 0, 0] > 0).long(), minlength=4),
    "scatter": lambda x: torch.zeros_like(x).scatter_add(2, x.argsort(2), x),
    "reflected": lambda x: functional.pad(x, (1, 2, 2, 1), mode="reflect"),
    "reflected and cropped": lambda x: functional.pad(x, (-2, 4, 5, -3), mode="reflect"),
    "repeated edges": lambda x: functional.pad(x, (1, -2, -1, 3), mode="replicate"),
    "wrapped": lambda x: functional.pad(x, (1, 2, 2, 1), mode="circular"),
    "wrapped and cropped": lambda x: functional.pad(x, (-2, 2, 1, 2), mode="circular"),
    "Fourier transform": lambda x: torch.fft.rfft(x).abs(),
    "windows": lambda x: x.unfold(3, 3, 2),
    "reduced": lambda x: functional.interpolate(x, scale_factor=0.7),
    "enlarged": lambda x: functional.interpolate(x, scale_factor=1.5),
    "enlarged, linearly": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "place of the largest of all": lambda x: x.argmax(),
    "attention": lambda x: functional.scaled_dot_product_attention(x.mT, x.mT, x.mT),
    "attention, scaled": lambda x: functional.scaled_dot_product_attention(x.mT, x.mT, x.mT, is_causal=True, scale=0.3),
    "written to diagonals": lambda x: (
        torch.diagonal_scatter(x, x.diagonal(0, 2, 3) * 2, 0, 2, 3),
        torch.diagonal_scatter(x, x.diagonal(-1, 3, 2) * 2, -1, 3, 2),
    ),
    "running extremes": lambda x: (*x.round().cummax(2), *x.round().cummin(3)),
    "most frequent": lambda x: x.round().mode(2).values,
    "scatter to a part": lambda x: x.scatter_add(0, torch.zeros_like(x[:, :, 2:]).long(), x[:, :, 1:] * 2),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images_of_any_size(name: str) -> None:
    model = Applied(OF_IMAGES[name])
    sizes = ({0: Dim.DYNAMIC, 2: Dim.DYNAMIC},)
    module = trivium.from_torch(exported(model, sizes, drawn(3, 4, 12, 10)))
    assert module.main.function_type.inputs[-1].shape == (None, 4, None, 10)
    run = trivium.compile(module)
    for shape in ((3, 4, 12, 10), (5, 4, 17, 10), (2, 4, 13, 10)):
        x = drawn(*shape)
        for found, wanted in zip(np_list(run(x.numpy())), np_list(model(x)), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_a_number_of_elements_that_torch_export_bounds() -> None:
    model = Applied(lambda x: (x[x > 0].sum(), x[x > 0.5]))
    program = exported(model, ({0: Dim("rows", max=64)},), drawn(3, 5))
    run = trivium.compile(trivium.from_torch(program))
    for rows in (3, 7):
        x = drawn(rows, 5)
        for found, wanted in zip(np_list(run(x.numpy())), np_list(model(x)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sizes_that_become_numbers_in_ops_of_others_are_an_error() -> None:
    program = exported(Applied(lambda x: x.logcumsumexp(0)), ({0: Dim.DYNAMIC},), drawn(3, 4))
    with pytest.raises(trivium.Error, match="has dynamic sizes: dimension 0 of x"):
        trivium.from_torch(program)


def shapes_of(kinds: Sequence[Any]) -> list[tuple[int | None, ...]]:
    return [kind.shape for kind in kinds]


def np_list(results: Any) -> list[np.ndarray]:
    listed = results if isinstance(results, list | tuple) else [results]
    return [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in listed]


def test_shapes_fix_sizes() -> None:
    program = exported(Words(), ({0: Dim.AUTO, 1: Dim.AUTO},), words(3, 5))
    kinds = [
        trivium.from_torch(program, shapes=shapes).main.function_type
        for shapes in ({}, {"words": (None, 7)}, {"words": (2, None)}, {"words": (2, 7)})
    ]
    assert shapes_of([kind.inputs[0] for kind in kinds]) == [(None, None), (None, 7), (2, None), (2, 7)]
    assert shapes_of([kind.results[0] for kind in kinds]) == [(None, None, 8), (None, 7, 8), (2, None, 8), (2, 7, 8)]
    expected = program.module()(words(2, 7)).detach()
    for shapes in ({"words": (None, 7)}, {"words": (2, 7)}):
        (found,) = np_list(trivium.compile(trivium.from_torch(program, shapes=shapes))(words(2, 7).numpy()))
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"image": (1, 2)}, "shapes has image, expected inputs: words"),
        ({"words": (1,)}, r"gives input words \(1,\), expected a shape like \(s\d+, s\d+\)"),
        ({"words": "12"}, "gives input words '12', expected a shape like"),
        ({"words": (1.5, None)}, r"gives input words \(1.5, None\), expected numbers, or None"),
    ],
)
def test_shapes_that_do_not_fit(shapes: Any, message: str) -> None:
    program = exported(Words(), ({0: Dim.AUTO, 1: Dim.AUTO},), words(3, 5))
    with pytest.raises(trivium.Error, match=message):
        trivium.from_torch(program, shapes=shapes)


def test_shapes_of_a_static_program() -> None:
    program = exported(nn.Linear(3, 2), None, drawn(4, 3))
    module = trivium.from_torch(program, shapes={"input": (4, 3)})
    assert shapes_of(module.main.function_type.inputs) == [(4, 3)]
    with pytest.raises(trivium.Error, match=r"gives input input \(5, 3\), expected a shape like \(4, 3\)"):
        trivium.from_torch(program, shapes={"input": (5, 3)})


def test_sizes_that_the_program_was_not_traced_for() -> None:
    run = trivium.compile(trivium.from_torch(exported(Even(), ({0: Dim.AUTO},), drawn(4))))
    np.testing.assert_array_equal(run(drawn(6).numpy())[0], drawn(6) + 1)
    with pytest.raises(trivium.ExecutionError, match=r"sizes of the inputs do not agree.* % 2\) == 0"):
        run(drawn(5).numpy())
    limited = exported(nn.Linear(3, 2), ({0: Dim("batch", min=3, max=16)},), drawn(4, 3))
    run = trivium.compile(trivium.from_torch(limited))
    assert np_list(run(drawn(16, 3).numpy()))[0].shape == (16, 2)
    for rows, limit in ((2, r"input.shape\[0\] >= 3"), (17, r"input.shape\[0\] <= 16")):
        with pytest.raises(trivium.ExecutionError, match=limit):
            run(drawn(rows, 3).numpy())
    with pytest.raises(trivium.Error, match="sizes of the inputs do not agree"):
        trivium.from_torch(exported(Even(), ({0: Dim.AUTO},), drawn(4)), shapes={"x": (5,)})


def test_sizes_that_follow_from_others() -> None:
    class Halves(nn.Module):
        def forward(self, x, y):
            return x[:, ::2] + y, x.reshape(-1, 4)

    half, rows = Dim("half", min=2), Dim("rows", min=2)
    program = exported(Halves(), ({0: 2 * rows, 1: 2 * half}, {0: 2 * rows, 1: half}), drawn(6, 8), drawn(6, 4))
    run = trivium.compile(trivium.from_torch(program))
    x, y = drawn(4, 12), drawn(4, 6)
    for found, wanted in zip(np_list(run(x.numpy(), y.numpy())), np_list(Halves()(x, y)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(trivium.Error, match="sizes of the inputs do not agree"):
        run(drawn(4, 12).numpy(), drawn(4, 5).numpy())
    module = trivium.from_torch(program, shapes={"x": (4, None), "y": (None, 6)})
    assert shapes_of(module.main.function_type.inputs) == [(4, 12), (4, 6)]


def test_sizes_of_variadic_arguments() -> None:
    class Stepped(nn.Module):
        def forward(self, x, *more):
            return x[::2] + more[0] - more[1]

    rows = {0: Dim.AUTO}
    program = exported(Stepped(), (rows, (rows, rows)), drawn(6, 3), drawn(3, 3), drawn(3, 3))
    run = trivium.compile(trivium.from_torch(program))
    args = drawn(8, 3), drawn(4, 3), drawn(4, 3) * 2
    np.testing.assert_array_equal(run(*(x.numpy() for x in args))[0], Stepped()(*args))
    with pytest.raises(trivium.Error, match="sizes of the inputs do not agree"):
        run(*(drawn(n, 3).numpy() for n in (8, 4, 5)))


def test_ops_that_need_numbers_name_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(ctx: Any, x: Any) -> Any:
        return ctx.reshape(ctx.slice(ctx.reshape(x, (x.type.size,)), 0, 0, 1), ())

    monkeypatch.setitem(rule._rules, "aten.median.default", {0: first})
    program = exported(Applied(torch.median), ({0: Dim.AUTO},), drawn(4, 3))
    with pytest.raises(trivium.UnsupportedOpError, match=r"aten\.median\.default: it does not support dynamic sizes"):
        trivium.from_torch(program)
    module = trivium.from_torch(program, shapes={"x": (2, 3)})
    np.testing.assert_array_equal(trivium.evaluate(module, drawn(2, 3).numpy())[0], drawn(2, 3)[0, 0])


def test_sizes_that_follow_from_a_maximum() -> None:
    """What PyTorch assumes of a convolution's result: `max(1, size - 2)`."""
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.AdaptiveAvgPool2d(1)).eval()
    dims = {0: Dim("batch"), 2: Dim.AUTO, 3: Dim.AUTO}
    program = export(model, (torch.randn(2, 2, 8, 8),), dynamic_shapes={"input": dims})
    run = trivium.compile(trivium.from_torch(program))
    for shape in ((2, 2, 8, 8), (5, 2, 9, 11)):
        x = torch.randn(shape)
        np.testing.assert_allclose(run(x.numpy())[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
