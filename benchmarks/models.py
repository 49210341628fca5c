"""Full-size models through the whole of Trivium, against PyTorch, one thread each: BERT-base (12 layers, a sequence of
128) and ResNet-50 (one image of 224 x 224), with random weights. Conversion and compilation are timed in a fresh
process with an empty cache of machine code, and compilation once more with a full one; latencies are medians of
interleaved calls. The peers are PyTorch eager and, with --inductor, torch.compile's own backend.

python benchmarks/models.py [--seconds 5] [--inductor] [--json out/models.json] [name ...]"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

Example = tuple[Any, tuple[Any, ...]]


def bert_base() -> Example:
    """BERT-base, and one sequence of 128 tokens."""
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig())

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids, attention_mask=mask)[0]

    return Encoder().eval(), (torch.randint(0, 30_000, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


def resnet_50() -> Example:
    """ResNet-50, and one image."""
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = ResNetForImageClassification(ResNetConfig(num_labels=1000))

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.model(pixel_values=images)[0]

    return Classifier().eval(), (torch.randn(1, 3, 224, 224),)


MODELS: dict[str, Callable[[], Example]] = {"BERT-base": bert_base, "ResNet-50": resnet_50}


def measure(name: str, seconds: float, inductor: bool) -> dict[str, float]:
    """All figures of one model, in this process; times in seconds."""
    import numpy as np
    import torch

    import trivium
    from trivium.commands.bench import measure as interleaved

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model, inputs = MODELS[name]()
    module, convert = timed(lambda: trivium.from_torch(model, inputs))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRIVIUM_CACHE"] = folder
        run, first = timed(lambda: trivium.compile(module, threads=1))
        _, again = timed(lambda: trivium.compile(module, threads=1))
    arrays = [x.numpy() for x in inputs]
    expected = model(*inputs).numpy()
    difference = float(np.abs(run(*arrays)[0] - expected).max() / np.abs(expected).max())
    calls: dict[str, Callable[[], Any]] = {"trivium": lambda: run(*arrays), "eager": lambda: model(*inputs)}
    if inductor:
        compiled = torch.compile(model)
        calls["inductor"] = lambda: compiled(*inputs)
    latencies = {peer: median for peer, (median, _) in interleaved(calls, seconds).items()}
    return {"convert": convert, "compile": first, "cached": again, "difference": difference, **latencies}


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """What a function returns, and how long it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def in_fresh_process(name: str, seconds: float, inductor: bool) -> dict[str, float]:
    """The figures of a model as another process measures them."""
    command = [sys.executable, __file__, "--measure", "--seconds", str(seconds), name]
    done = subprocess.run([*command, *["--inductor"] * inductor], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@click.command()
@click.option("--seconds", default=5.0, show_default=True, help="Time for each contender.")
@click.option("--inductor", is_flag=True, help="Measure torch.compile's own backend as well (it takes a minute).")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the figures to this file.")
@click.option("--measure", "inside", is_flag=True, hidden=True, help="Print the figures of this process.")
@click.argument("names", nargs=-1, type=click.Choice(list(MODELS)))
def main(seconds: float, inductor: bool, path: Path | None, inside: bool, names: tuple[str, ...]) -> None:
    """Measures the models NAMES, or all."""
    if inside:
        print(json.dumps(measure(names[0], seconds, inductor)))
        return
    found = {name: in_fresh_process(name, seconds, inductor) for name in names or MODELS}
    peers = ["eager", "inductor"] if inductor else ["eager"]
    columns = ["convert", "compile", "cached", "difference", "trivium"]
    table = Table("model", *columns, *(column for peer in peers for column in (peer, f"trivium / {peer}")))
    for name, figures in found.items():
        times = [f"{figures[column]:.2f} s" for column in columns[:3]]
        latencies = [f"{figures['difference']:.1e}", f"{figures['trivium'] * 1e3:.1f} ms"]
        for peer in peers:
            latencies += [f"{figures[peer] * 1e3:.1f} ms", f"{figures['trivium'] / figures[peer]:.2f}"]
        table.add_row(name, *times, *latencies)
    Console(width=120).print(table)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
