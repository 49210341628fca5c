"""Matrix products and convolutions through the whole compiler, one thread, against PyTorch's and against the
processor's own limit. Contenders take turns and medians are shown, because machines slow down and speed up while one
measures.

python benchmarks/contraction.py [--rounds 15] [--csv out/contraction.csv] [name ...]"""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import click
import numpy as np
import torch
from peak import Peak
from rich.console import Console
from rich.table import Table

import trivium
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.func import Function, Module
from trivium.ir.ops import ConvDimensionNumbers, DotDimensionNumbers
from trivium.ir.types import F32, TensorType

Run = Callable[[], object]

FIRST = ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
LAST = ConvDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def compiled(op: Callable[..., object], lhs: np.ndarray, rhs: np.ndarray, constant: bool) -> Run:
    """`op` as a program of its own on one thread; rhs is known to the compiler or an argument."""

    def body(builder, *arguments):
        weights = builder.add(ops.Constant(DenseElements(rhs))) if constant else arguments[1]
        return builder.add(op(arguments[0], weights))

    arrays = (lhs,) if constant else (lhs, rhs)
    types = [TensorType(array.shape, F32) for array in arrays]
    executable = trivium.compile(Module.build(functions=[Function.build("main", types, body)]), threads=1)
    return lambda: executable(*arrays)


@dataclass(frozen=True)
class Matmul:
    """lhs[m, k] @ rhs[k, n], or @ rhs[n, k] transposed as PyTorch keeps the weights of a linear layer."""

    m: int
    n: int
    k: int
    transposed: bool = False

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}{' T' if self.transposed else ''}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @cached_property
    def contenders(self) -> dict[str, Run]:
        lhs, rhs = normal(self.m, self.k), normal(*((self.n, self.k) if self.transposed else (self.k, self.n)))
        numbers = DotDimensionNumbers((), (), (1,), (1 if self.transposed else 0,))

        def op(x, y):
            return ops.DotGeneral(x, y, dot_dimension_numbers=numbers)

        x, y = torch.from_numpy(lhs), torch.from_numpy(rhs)
        y = y.T if self.transposed else y
        runs = {"constant": compiled(op, lhs, rhs, True), "argument": compiled(op, lhs, rhs, False)}
        return runs | {"torch": lambda: torch.mm(x, y)}


@dataclass(frozen=True)
class Conv:
    """A square convolution of one image, channels first or last."""

    channels: int
    size: int
    features: int
    kernel: int
    stride: int = 1
    groups: int = 1
    last: bool = True

    def __str__(self) -> str:
        name = f"{self.kernel}x{self.kernel}/{self.stride} {self.channels} to {self.features} at {self.size}"
        return f"{name}{' depthwise' if self.groups > 1 else ''}{' last' if self.last else ' first'}"

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def flops(self) -> int:
        positions = ((self.size + 2 * self.padding - self.kernel) // self.stride + 1) ** 2
        return 2 * positions * self.features * self.channels // self.groups * self.kernel**2

    @cached_property
    def contenders(self) -> dict[str, Run]:
        lhs = normal(1, self.channels, self.size, self.size)
        rhs = normal(self.features, self.channels // self.groups, self.kernel, self.kernel)
        layout = torch.channels_last if self.last else torch.contiguous_format
        x, y = (torch.from_numpy(array).to(memory_format=layout) for array in (lhs, rhs))
        if self.last:
            lhs, rhs = (np.ascontiguousarray(a.transpose(o)) for a, o in ((lhs, (0, 2, 3, 1)), (rhs, (2, 3, 1, 0))))

        def op(x, y):
            return ops.Convolution(
                x,
                y,
                window_strides=[self.stride] * 2,
                padding=[[self.padding] * 2] * 2,
                dimension_numbers=LAST if self.last else FIRST,
                feature_group_count=self.groups,
                batch_group_count=1,
            )

        runs = {"constant": compiled(op, lhs, rhs, True), "argument": compiled(op, lhs, rhs, False)}
        options = {"stride": self.stride, "padding": self.padding, "groups": self.groups}
        return runs | {"torch": lambda: torch.conv2d(x, y, **options)}


SHAPES = (
    Matmul(512, 512, 512),
    Matmul(1024, 1024, 1024),
    Matmul(1024, 1024, 1024, True),
    Matmul(128, 3072, 768),
    Matmul(128, 768, 768, True),
    Matmul(197, 768, 3072),
    Matmul(49, 512, 2048),
    Matmul(1, 3072, 768),
    *(
        Conv(*shape, last=last)
        for shape in (
            (3, 224, 64, 7, 2),
            (64, 56, 64, 3),
            (64, 56, 256, 1),
            (128, 28, 128, 3),
            (256, 14, 256, 3),
            (512, 7, 512, 3),
            (1024, 14, 2048, 1, 2),
            (144, 56, 144, 3, 1, 144),
        )
        for last in (True, False)
    ),
)


def measure(shape: Matmul | Conv, peak: Peak, rounds: int) -> tuple[dict[str, float], float]:
    """Median GFLOP/s of each contender, and of the processor's limit in the same minute."""
    runs = shape.contenders
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    limits = []
    for _ in range(rounds):
        limits.append(peak.measure())
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    rates = {name: shape.flops / statistics.median(times) / 1e9 for name, times in seconds.items()}
    return rates, statistics.median(limits)


@click.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--csv", "path", type=click.Path(writable=True), help="Also write the figures to this file.")
@click.argument("names", nargs=-1)
def main(rounds: int, path: str | None, names: tuple[str, ...]) -> None:
    """Measures the shapes whose name contains one of NAMES, or all."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    peak = Peak()
    table = Table("shape", "peak", "constant", "share", "argument", "share", "torch", "share", "ratio")
    rows = []
    for shape in SHAPES:
        if names and not any(name in str(shape) for name in names):
            continue
        rates, limit = measure(shape, peak, rounds)
        figures = [f"{limit:.0f}"]
        for rate in rates.values():
            figures += [f"{rate:.0f}", f"{rate / limit:.0%}"]
        table.add_row(str(shape), *figures, f"{rates['constant'] / rates['torch']:.2f}")
        rows.append({"shape": str(shape), "peak": limit, **rates})
    Console(width=120).print(table)
    ratios = [row["constant"] / row["torch"] for row in rows]
    if ratios:
        print(f"geometric mean of the ratios constant / torch: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")
    if path:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
