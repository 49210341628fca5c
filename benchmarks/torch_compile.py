"""Inference through `torch.compile`, backend by backend: Trivium and TorchInductor with parameters as arguments, the
same two with parameters as constants (Trivium's option `freeze`, Inductor's `freezing`), and eager PyTorch. Random
weights.

python benchmarks/torch_compile.py [--threads 1] [--rounds 15] [--no-inductor] [--json out/times.json] [name ...]"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click
from models import Example, bert_base, resnet_50
from rich.console import Console
from rich.table import Table


def mobilenet_v2() -> Example:
    """MobileNetV2, and one image."""
    import torch
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000))

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.model(pixel_values=images)[0]

    return Classifier().eval(), (torch.randn(1, 3, 224, 224),)


MODELS: dict[str, Callable[[], Example]] = {
    "ResNet-50": resnet_50,
    "MobileNetV2": mobilenet_v2,
    "BERT-base": bert_base,
}


def contenders(model: Any, inductor: bool) -> dict[str, Callable[..., Any]]:
    """The model by the names of what runs it."""
    import torch

    compiled: dict[str, Callable[..., Any]] = {
        "trivium": torch.compile(model, backend="trivium"),
        "trivium, freeze": torch.compile(model, backend="trivium", options={"freeze": True}),
        "eager": model,
    }
    if inductor:
        compiled["inductor"] = torch.compile(model)
        compiled["inductor, freezing"] = torch.compile(model, options={"freezing": True})
    return compiled


def measure(name: str, rounds: int, inductor: bool) -> dict[str, list[float]]:
    """The seconds of a call in each round, in which all contenders take turns."""
    import torch

    model, inputs = MODELS[name]()
    times: dict[str, list[float]] = {}
    with torch.no_grad():
        calls = contenders(model, inductor)
        expected = model(*inputs)
        for label, call in calls.items():
            for _ in range(2):
                found = call(*inputs)
            difference = float((found - expected).abs().max() / expected.abs().max())
            assert difference < 1e-3, f"{label} differs from eager PyTorch by {difference}"
        for _ in range(rounds):
            for label, call in calls.items():
                start = perf_counter()
                call(*inputs)
                times.setdefault(label, []).append(perf_counter() - start)
    return times


@click.command()
@click.option("--threads", default=1, show_default=True, help="Threads of each contender.")
@click.option("--rounds", default=15, show_default=True, help="Calls of each contender.")
@click.option("--inductor/--no-inductor", default=True, help="TorchInductor too; it compiles for minutes.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the times to this file.")
@click.argument("names", nargs=-1, type=click.Choice(list(MODELS)))
def main(threads: int, rounds: int, inductor: bool, path: Path | None, names: tuple[str, ...]) -> None:
    """Measures the models NAMES, or all."""
    import os

    os.environ["TRIVIUM_NUM_THREADS"] = str(threads)
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    found = {name: measure(name, rounds, inductor) for name in names or MODELS}
    table = Table("model", *next(iter(found.values())))
    for name, times in found.items():
        best = [times["trivium, freeze"], times["trivium"]]
        cells = []
        for label, each in times.items():
            ours = best[0] if label.endswith(("freeze", "freezing")) else best[1]
            ratio = median(peer / own for peer, own in zip(each, ours, strict=True))
            cells.append(f"{median(each) * 1e3:.1f} ms, {ratio:.2f}")
        table.add_row(name, *cells)
    Console(width=140).print(table)
    print("Second number: the contender's time over Trivium's with parameters of the same kind (median over rounds).")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
