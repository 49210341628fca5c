"""Measures models of PyTorch on a GPU of NVIDIA's, compiled by Trivium and by TorchInductor, which take turns:

python -m benchmarks.gpu_models [--seconds 5] [name ...]

Their results, of a training step the gradients, are compared before anything is measured. A training step is a forward
and a backward pass, without an optimizer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import click
import torch

from benchmarks.gpu import OURS, Call, timed
from benchmarks.launches import without_dropout
from benchmarks.rows.models import bert_base, gpt2, resnet_50

PEER = "inductor"
TOLERANCE = 1e-2
ROUNDS = 5

Example = Callable[[], Any]
"""Makes a model and its inputs."""

MODELS: dict[str, tuple[Example, bool]] = {
    "BERT-base": (bert_base, False),
    "ResNet-50": (resnet_50, False),
    "BERT-base, training step": (without_dropout, True),
    "ResNet-50, training step": (resnet_50, True),
    "GPT-2, training step": (gpt2, True),
}
"""Each model, and whether it is trained."""


class Contender:
    """A model that a backend has compiled, on a device."""

    def __init__(self, backend: str, example: Example, trains: bool, device: str) -> None:
        torch.manual_seed(0)
        model, inputs = example()
        self.model, self.trains = model.to(device).train(trains), trains
        self.inputs = [x.to(device) for x in inputs]
        self.compiled = torch.compile(self.model, backend=backend)

    def run(self) -> list[torch.Tensor]:
        """Returns what one run computes."""
        if not self.trains:
            with torch.no_grad():
                return [self.compiled(*self.inputs)]
        self.model.zero_grad()
        self.compiled(*self.inputs).float().square().mean().backward()
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
    return max(float((x.float() - y.float()).abs().max()) for x, y in pairs) / max(scale, 1e-30)


def measured(
    name: str, backends: Sequence[str], device: str, wait: Callable[[], object], seconds: float
) -> dict[str, float]:
    """Returns the median time of a run of each backend, in seconds."""
    example, trains = MODELS[name]
    torch._dynamo.reset()
    contenders = {backend: Contender(backend, example, trains, device) for backend in backends}
    results = {backend: contender.run() for backend, contender in contenders.items()}
    wait()
    for backend, found in results.items():
        if not (error := difference(found, results[backends[0]])) <= TOLERANCE:
            raise click.ClickException(f"{name}: {backend} differs by {error:.2g} of the largest element")
    turns = [
        {backend: timed(contender.call(wait), seconds / ROUNDS) for backend, contender in contenders.items()}
        for _ in range(ROUNDS)
    ]
    return {backend: median(turn[backend] for turn in turns) for backend in backends}


@click.command(help=__doc__)
@click.option("--seconds", default=5.0, help="the time of each contender of a model")
@click.argument("names", nargs=-1)
def main(seconds: float, names: tuple[str, ...]) -> None:
    if not torch.cuda.is_available():
        raise click.ClickException("PyTorch finds no GPU, so there is nothing to measure")
    click.echo(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    click.echo("| model | ours | their time over ours |\n| --- | --- | --- |")
    for name in MODELS:
        if not names or any(asked in name for asked in names):
            times = measured(name, (OURS, PEER), "cuda", torch.cuda.synchronize, seconds)
            click.echo(f"| {name} | {1e3 * times[OURS]:.2f} ms | {times[PEER] / times[OURS]:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
