"""Single operations of PyTorch, and gradients of single operations, through `torch.compile`: those in which a compiler
is slow if it computes lane by lane, materializes indices, or takes a general way where there is a special one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.row import OURS, Call, Row

F = torch.nn.functional
Made = Callable[[], tuple[torch.Tensor, ...]]
Function = Callable[..., torch.Tensor]


def row(name: str, function: Function, inputs: Made, **fields: Any) -> Row:
    """Returns a row of a function."""

    def contender(run: Function, given: tuple[torch.Tensor, ...]) -> Call:
        def call() -> torch.Tensor:
            with torch.no_grad():
                return run(*given)

        return call

    return _row(name, function, inputs, contender, **fields)


def gradient(name: str, function: Function, inputs: Made, **fields: Any) -> Row:
    """Returns a row of a function and its gradient with respect to all inputs of floats."""

    def contender(run: Function, given: tuple[torch.Tensor, ...]) -> Call:
        given = tuple(x.requires_grad_(x.is_floating_point()) for x in given)
        wanted = [x for x in given if x.requires_grad]
        torch.manual_seed(1)
        weights = torch.randn(run(*given).shape)  # not like a result, whose order in memory is the contender's

        def call() -> tuple[torch.Tensor, ...]:
            return torch.autograd.grad(run(*given), wanted, weights)

        return call

    return _row(f"{name}, gradient", function, inputs, contender, **fields)


def _row(name: str, function: Function, inputs: Made, contender: Callable[..., Call], **fields: Any) -> Row:
    def make(threads: int) -> dict[str, Call]:
        torch._dynamo.reset()
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        given = inputs()
        compiled = {OURS: torch.compile(function, backend="trivium"), "inductor": torch.compile(function)}
        return {who: contender(run, given) for who, run in {**compiled, "eager": function}.items()}

    return Row(name, make, **fields)


def randn(*shapes: tuple[int, ...]) -> Made:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def positive(count: int) -> Made:
    return lambda: tuple(torch.rand(1024, 1024) + 0.1 for _ in range(count))


def depthwise(size: int, stride: int = 1) -> tuple[Function, Made]:
    """A depthwise convolution of 64 channels."""
    image, kernel = (2, 64, 56, 56), (64, 1, size, size)
    return (lambda x, w: F.conv2d(x, w, padding=size // 2, stride=stride, groups=64)), randn(image, kernel)


IMAGE = (2, 64, 56, 56)
PATCHES = (2, 3, 224, 224), (384, 3, 16, 16)


def two_convolutions(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The end of a network that labels a picture."""
    return torch.sigmoid(F.conv2d(torch.relu(F.conv2d(x, first, padding=1)), second, padding=1))


def transposed(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """A layer of a decoder, which doubles the size of a picture."""
    return F.conv_transpose2d(x, kernel, stride=2, padding=1)


def turned(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """A layer of the encoder of a sound, and the order of axes that attention expects."""
    return F.gelu(F.conv1d(x, kernel, stride=2)).transpose(1, 2).contiguous()


def features_last(shape: tuple[int, ...]) -> Made:
    return lambda: (torch.randn(shape).to(memory_format=torch.channels_last),)


def _sampled() -> tuple[torch.Tensor, ...]:
    return torch.randn(IMAGE), torch.rand(2, 56, 56, 2) * 2 - 1


def _indexed() -> tuple[torch.Tensor, ...]:
    return torch.randn(1024, 1024), torch.randint(0, 1024, (1024, 1024))


def _sorted() -> tuple[torch.Tensor, ...]:
    return torch.randn(10_000).sort().values, torch.randn(100_000)


def _bags() -> tuple[torch.Tensor, ...]:
    return torch.randn(10_000, 64), torch.randint(0, 10_000, (20_000,)), torch.arange(0, 20_000, 10)


def _integers() -> tuple[torch.Tensor, ...]:
    x, y = torch.randint(1, 1 << 15, (2, 1024, 1024), dtype=torch.int16)
    return x, y


def _rotated() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 8, 256, 64), torch.polar(torch.ones(256, 32), torch.randn(256, 32))


def rotary(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3)


def stft(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(torch.stft(x, 400, 160, window=torch.hann_window(400), return_complex=True))


ROWS = (
    row("f32 to i32 1024x1024", lambda x: (x * 50).int(), positive(1), quick=True),
    row("fmod 1024x1024", torch.fmod, positive(2)),
    row("exp2 1024x1024", torch.exp2, positive(1)),
    row("i16 remainders 1024x1024", torch.remainder, _integers),
    row("floor_divide 1024x1024", torch.floor_divide, positive(2), tolerance=None),
    row("sums of columns 1000x1000", lambda x: x.sum(0), randn((1000, 1000))),
    row("largest of columns 1000x1000", lambda x: x.amax(0), randn((1000, 1000))),
    row("places of the largest of 10, 100k times", lambda x: x.argmax(1), randn((100_000, 10))),
    row("products 12x512x512x64", torch.bmm, randn((12, 512, 512), (12, 512, 64))),
    row("cumsum 1M i64", lambda x: x.cumsum(0), lambda: (torch.randint(0, 10, (1 << 20,)),)),
    row("cumsum 1024x1024", lambda x: x.cumsum(1), randn((1024, 1024))),
    row("cummax 512x1024", lambda x: x.cummax(1)[0], randn((512, 1024))),
    row("rotation of 2x64x56x56", lambda x: x.rot90(1, (2, 3)), randn(IMAGE)),
    row("transpose of 512x512 booleans", lambda x: x.t().contiguous(), lambda: (torch.rand(512, 512) > 0.5,)),
    row("columns of 65536x40 twice", lambda x, y: torch.cat([x, y], 1), randn((65536, 40), (65536, 40))),
    row("2 x + y of 64 MB", lambda x, y: 2 * x + y, randn((4096, 4096), (4096, 4096))),
    row("gather 1024x1024", lambda x, at: x.gather(1, at), _indexed),
    row("top-k 40 of 4x50257", lambda x: x.topk(40)[0], randn((4, 50257)), quick=True),
    row("top-k 10 of 1M", lambda x: x.topk(10)[0], randn((1_000_000,))),
    row("places of 100k in 10k", torch.searchsorted, _sorted),
    row("bags of 10 embeddings", lambda w, at, begin: F.embedding_bag(at, w, begin, mode="sum"), _bags),
    row("grid sample 2x64x56x56", lambda x, at: F.grid_sample(x, at, align_corners=False), _sampled),
    gradient("grid sample 2x64x56x56", lambda x, at: F.grid_sample(x, at, align_corners=False), _sampled),
    row("bilinear resizing x2 2x64x56x56", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), randn(IMAGE)),
    row(
        "bilinear resizing x2 2x64x56x56, features last",
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        features_last(IMAGE),
    ),
    row("bicubic resizing x2 2x64x56x56", lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), randn(IMAGE)),
    row("reflected padding 2x64x56x56", lambda x: F.pad(x, (3, 3, 3, 3), "reflect"), randn(IMAGE)),
    row("circular padding 2x64x56x56", lambda x: F.pad(x, (1, 1, 1, 1), "circular"), randn(IMAGE)),
    gradient("max pool 3x3/2 2x64x56x56", lambda x: F.max_pool2d(x, 3, 2, 1), randn(IMAGE)),
    gradient("group norm 2x64x56x56", lambda x: F.group_norm(x, 8), randn(IMAGE)),
    row("group norm of 1x64x56x56, features last", lambda x: F.group_norm(x, 1), features_last((1, 64, 56, 56))),
    row("3x3 64 to 64 to 1 at 128", two_convolutions, randn((1, 64, 128, 128), (64, 64, 3, 3), (1, 64, 3, 3))),
    row("1-D 3/2 512 to 512 at 400, turned", turned, randn((1, 512, 400), (512, 512, 3)), quick=True),
    row("transposed 4x4/2 64 to 64 at 28", transposed, randn((1, 64, 28, 28), (64, 64, 4, 4))),
    row("transposed 4x4/2 64 to 3 at 64", transposed, randn((1, 64, 64, 64), (64, 3, 4, 4))),
    gradient("depthwise 3x3", *depthwise(3), quick=True),
    gradient("depthwise 3x3/2", *depthwise(3, 2)),
    row("depthwise 7x7", *depthwise(7)),
    gradient("depthwise 7x7", *depthwise(7)),
    gradient("patches of 16x16", lambda x, w: F.conv2d(x, w, stride=16), randn(*PATCHES)),
    row("FFT 128x1000", lambda x: torch.view_as_real(torch.fft.fft(x)), randn((128, 1000))),
    row("STFT of 400, 4x16000", stft, randn((4, 16000))),
    row("rotary embedding of pairs 2x8x256x64", rotary, _rotated),
)
