"""Pools and convolutions beside, before and after one another, against PyTorch: the branches of convolutional networks
in every arrangement, layout and type. Cases of one rank, layout and type are one program."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import trivium
from trivium.backends.cpu.target import CODE_GENERATION
from trivium.importers.pytorch import import_graph
from trivium.importers.pytorch.types import to_array

pytestmark = pytest.mark.torch

ARRANGEMENTS = ("add", "multiply", "concatenate", "pool first", "pool last")
CHANNELS = (1, 3, 8, 13, 17, 32)
EXTENTS = {1: (19,), 2: (9, 8), 3: (7, 6, 6)}
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}
TOLERANCES = {"f32": 1e-5, "f64": 1e-13, "bf16": 2.0**-7}


@dataclass(frozen=True)
class Case:
    """A pool and a convolution of one input, and how they meet."""

    arrangement: str
    pool: str
    stride: int
    channels: int
    kernel: int
    window: int
    padded: bool


def _cases() -> dict[tuple[int, str, str], list[Case]]:
    """Every rank, layout, arrangement, pool and stride, two or three times, with other sizes each time."""
    found: dict[tuple[int, str, str], list[Case]] = {}
    grid = product((1, 2, 3), ("first", "last"), ARRANGEMENTS, ("max", "average"), (1, 2), range(3))
    draw = random.Random(0)
    for rank, layout, arrangement, pool, stride, turn in grid:
        if rank + turn == 5:
            continue
        # PyTorch has no average of three dimensions in bfloat16.
        narrow = "f32" if rank == 3 and pool == "average" else "bf16"
        dtype = draw.choice(("f32", "f32", "f32", "f64", narrow))
        sizes = draw.choice(CHANNELS), draw.randint(1, 3), draw.randint(2, 3), draw.random() < 0.6
        found.setdefault((rank, layout, dtype), []).append(Case(arrangement, pool, stride, *sizes))
    return found


CASES = _cases()


class Block(nn.Module):
    """One case; its input and its result have their channels last where `last` says so."""

    def __init__(self, case: Case, rank: int, last: bool):
        super().__init__()
        self.case, self.last = case, last
        kinds = {"max": "MaxPool", "average": "AvgPool"}
        padding = case.window // 2 if case.padded else 0
        self.pool = getattr(nn, f"{kinds[case.pool]}{rank}d")(case.window, case.stride, padding)
        convolution = getattr(nn, f"Conv{rank}d")
        padding = case.kernel // 2 if case.padded else 0
        self.convolution = convolution(case.channels, case.channels, case.kernel, case.stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.last:
            return self.joined(x)
        return self.joined(x.movedim(-1, 1)).movedim(1, -1)

    def joined(self, x: torch.Tensor) -> torch.Tensor:
        if self.case.arrangement == "pool first":
            return self.convolution(self.pool(x))
        if self.case.arrangement == "pool last":
            return self.pool(self.convolution(x))
        pooled, convolved = self.pool(x), self.convolution(x)
        extents = [min(pair) for pair in zip(pooled.shape[2:], convolved.shape[2:], strict=True)]
        place = (slice(None), slice(None), *map(slice, extents))
        pooled, convolved = pooled[place], convolved[place]
        if self.case.arrangement == "concatenate":
            return torch.cat([pooled, convolved], 1)
        return pooled + convolved if self.case.arrangement == "add" else pooled * convolved


class Network(nn.Module):
    """Several cases side by side. Each takes the input with its number of channels."""

    def __init__(self, cases: list[Case], rank: int, last: bool):
        super().__init__()
        self.blocks = nn.ModuleList(Block(case, rank, last) for case in cases)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(block(inputs[CHANNELS.index(block.case.channels)]) for block in self.blocks)


def _inputs(rank: int, last: bool, dtype: torch.dtype) -> list[torch.Tensor]:
    shapes = [(2, *EXTENTS[rank], n) if last else (2, n, *EXTENTS[rank]) for n in CHANNELS]
    return [torch.randn(shape).to(dtype) for shape in shapes]


@pytest.fixture(autouse=True)
def quick_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LLVM makes of the code is not what is tested here, and takes most of the time."""
    monkeypatch.setitem(CODE_GENERATION, "opt", 0)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def test_the_grid_is_large() -> None:
    assert sum(map(len, CASES.values())) >= 300
    assert len({(key, case) for key, cases in CASES.items() for case in cases}) >= 300


@pytest.mark.parametrize(("rank", "layout", "dtype"), list(CASES))
def test_pools_and_convolutions(rank: int, layout: str, dtype: str) -> None:
    torch.manual_seed(rank)
    cases, last = CASES[rank, layout, dtype], layout == "last"
    model = Network(cases, rank, last).to(TYPES[dtype]).eval()
    inputs = _inputs(rank, last, TYPES[dtype])
    with torch.no_grad():
        graph = make_fx(model)(*inputs)
        results = trivium.compile(import_graph(graph, inputs).module, threads=1)(*map(to_array, inputs))
        # bfloat16 is rounded after each op, PyTorch's as ours: both are held against double precision.
        expected = model(*inputs) if dtype != "bf16" else model.double()(*[x.double() for x in inputs])
    for case, result, wanted in zip(cases, results, expected, strict=True):
        reference = _array(wanted)
        scale = np.abs(reference).max()
        off = np.abs(np.asarray(result).astype(np.float64) - reference).max()
        assert result.shape == reference.shape, case
        assert off <= TOLERANCES[dtype] * scale, f"{case}: off by {off} of {scale}"
