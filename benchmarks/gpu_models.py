"""Measures PyTorch models on an NVIDIA GPU, compiled by Trivium and by TorchInductor, which take turns:

python -m benchmarks.gpu_models [--seconds 5] [--tf32] [name ...]

Before anything is measured, results (for a training step, the gradients) are compared with those of PyTorch in f64.
Ours may differ by 1 % (with tf32, 5 %) of the largest element, or twice as much as TorchInductor's. A training step
is a forward and a backward pass, without an optimizer. Where the name has no type, both compute with f32, or both may
round factors to tf32. If a model fails, hangs or is wrong, its line reports that, and the others are measured
nevertheless: each model has a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median

import click
import torch

from benchmarks.apart import apart
from benchmarks.gpu import OURS, Call, brief, timed
from benchmarks.gpu_workloads import WORKLOADS, Workload

PEER = "inductor"
TOLERANCE, TOLERANCE_OF_TF32 = 1e-2, 5e-2
ROUNDS = 5


class Contender:
    """A model that a backend has compiled, on a device; without a backend, it runs in PyTorch, with f64."""

    def __init__(self, backend: str, workload: Workload, device: str) -> None:
        torch.manual_seed(0)
        model, inputs = workload.example()
        self.trains, self.casts = workload.trains, None
        dtype = workload.dtype if backend else torch.float64
        if backend and workload.trains and dtype != torch.float32:
            self.casts, dtype = dtype, torch.float32
        self.model, self.device = model.to(device).to(dtype).train(workload.trains), device
        self.inputs = [x.to(device, dtype if x.is_floating_point() else x.dtype) for x in inputs]
        self.compiled = torch.compile(self.model, backend=backend) if backend else self.model

    def run(self) -> list[torch.Tensor]:
        """Returns what one run computes."""
        if not self.trains:
            with torch.no_grad():
                return [self.compiled(*self.inputs)]
        self.model.zero_grad()
        with torch.autocast(self.device, self.casts, enabled=self.casts is not None):
            found = self.compiled(*self.inputs)
        (found if found.dtype == torch.float64 else found.float()).square().mean().backward()
        return [p.grad for p in self.model.parameters() if p.grad is not None]

    def call(self, wait: Callable[[], object]) -> Call:
        def call() -> Callable[[], object]:
            self.run()
            return wait

        return call


def difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Returns the largest difference, of the largest element of all."""
    scale = max(float(x.abs().max()) for x in expected)
    pairs = zip(found, expected, strict=True)
    return max(float((x.double() - y.double()).abs().max()) for x, y in pairs) / max(scale, 1e-30)


def rounds_to_tf32() -> bool:
    """Whether PyTorch may round factors, of which Trivium asks PyTorch."""
    return torch.get_float32_matmul_precision() != "highest"


def round_to_tf32(allowed: bool) -> None:
    """Lets products and convolutions of PyTorch round their factors, or none of them."""
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def measured(
    name: str, backends: Sequence[str], device: str, wait: Callable[[], object], seconds: float
) -> dict[str, float]:
    """Returns the median time of a run of each backend, in seconds."""
    workload = WORKLOADS[name]
    torch._dynamo.reset()
    contenders = {backend: Contender(backend, workload, device) for backend in backends}
    results = {backend: contender.run() for backend, contender in contenders.items()}
    exact = Contender("", workload, device).run()
    wait()
    errors = {backend: difference(found, exact) for backend, found in results.items()}
    del results, exact
    tolerance = TOLERANCE_OF_TF32 if rounds_to_tf32() else TOLERANCE
    for backend, error in errors.items():
        if not error <= max(tolerance, 2 * errors[backends[-1]]):
            raise click.ClickException(f"{name}: {backend} differs by {error:.2g} of the largest element")
    turns = [
        {backend: timed(contender.call(wait), seconds / ROUNDS) for backend, contender in contenders.items()}
        for _ in range(ROUNDS)
    ]
    return {backend: median(turn[backend] for turn in turns) for backend in backends}


def row(name: str, seconds: float) -> tuple[str, bool]:
    """Returns the line of a model, and whether it was measured."""
    try:
        times = measured(name, (OURS, PEER), "cuda", torch.cuda.synchronize, seconds)
    except Exception as error:
        return f"| {name} | {brief(error)} | |", False
    return f"| {name} | {1e3 * times[OURS]:.2f} ms | {times[PEER] / times[OURS]:.2f} |", True


def row_apart(name: str, seconds: float, tf32: bool, limit: float) -> tuple[str, bool]:
    """The same, measured by another process."""
    options = ["--seconds", str(seconds), *(["--tf32"] if tf32 else []), "--limit", "0", "--row", name]
    outcome = apart(["-m", "benchmarks.gpu_models", *options], limit)
    lines = [line for line in outcome.lines if line.startswith(f"| {name} | ")]
    return (lines[0], not outcome.failure) if lines else (f"| {name} | {outcome.failure} | |", False)


@click.command(help=__doc__)
@click.option("--seconds", default=5.0, help="the time of each contender of a model")
@click.option("--tf32", is_flag=True, help="factors may be rounded to tf32")
@click.option("--limit", default=1200.0, help="the most seconds of a model; 0 measures all models in this process")
@click.option("--row", "exactly", help="the name of the only model")
@click.argument("names", nargs=-1)
def main(seconds: float, tf32: bool, limit: float, exactly: str | None, names: tuple[str, ...]) -> None:
    if not torch.cuda.is_available():
        raise click.ClickException("PyTorch finds no GPU, so there is nothing to measure")
    round_to_tf32(tf32)
    click.echo(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {'tf32' if tf32 else 'f32'}\n")
    click.echo("| model | ours | their time over ours |\n| --- | --- | --- |")
    failed = list[str]()
    for name in WORKLOADS:
        if exactly not in (None, name) or (names and not any(asked in name for asked in names)):
            continue
        line, is_measured = row_apart(name, seconds, tf32, limit) if limit else row(name, seconds)
        click.echo(line)
        failed += [] if is_measured else [name]
    if failed:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
