"""The time that compiling takes, with nothing in any cache:

python -m benchmarks.first_call [--turns 3] [--json out/first_call.json] [name ...]

For PyTorch, it is that of the first call through `torch.compile`. `aot_eager` compiles nothing: its time is what Dynamo
and AOTAutograd need, and part of that of both compilers. Programs in StableHLO are compiled by Trivium and by XLA. Each
measurement has a process of its own, and the contenders take turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click
from rich.console import Console
from rich.table import Table

MARK = "seconds: "
FOR_TORCH = "trivium", "inductor", "aot_eager"
FOR_MODULES = "trivium", "xla"
COLUMNS = tuple(dict.fromkeys(FOR_TORCH + FOR_MODULES))
INFERENCE = {"ResNet-50": "resnet_50", "BERT-base s128": "bert_base", "GPT-2 s128": "gpt2"}
STEPS = {"ResNet-18 step": "resnet_18", "MobileNetV2 step": "mobilenet_v2", "BERT-mini step": "bert_mini"}
MODULES = "ResNet-18 step b4", "ViT-small step b4", "U-Net step b1", "GPT-2 step s128"
CONTENDERS = {**dict.fromkeys((*INFERENCE, *STEPS), FOR_TORCH), **dict.fromkeys(MODULES, FOR_MODULES)}


def first_call(name: str, backend: str) -> Callable[[], Any]:
    """Returns the first call of a model, or of a step of its training."""
    import torch

    from benchmarks.rows import models, torch_training

    torch.manual_seed(0)
    if name in STEPS:
        model, inputs, labels = getattr(torch_training, STEPS[name])()
        return torch_training.step(model, backend, inputs, labels)
    model, inputs = getattr(models, INFERENCE[name])()
    compiled = torch.compile(model.eval().requires_grad_(False), backend=backend)
    return lambda: compiled(*inputs)


def compilation(name: str, compiler: str) -> Callable[[], Any]:
    """Returns the compilation of a program in StableHLO."""
    import jax

    import trivium
    from benchmarks.memory_programs import PROGRAMS
    from benchmarks.peak_memory import compiled_by_xla

    module = PROGRAMS[name]()
    text = module.text(elide=False)
    jax.devices("cpu")
    trivium.compile(trivium.parse("func.func @main() { return }"))  # neither counts the start of a device
    return (lambda: trivium.compile(module)) if compiler == "trivium" else (lambda: compiled_by_xla(text))


def inside(name: str, contender: str) -> None:
    """Measures one contender in this process, and prints the seconds."""
    run = compilation(name, contender) if name in MODULES else first_call(name, contender)
    begin = perf_counter()
    run()
    print(f"{MARK}{perf_counter() - begin}", flush=True)


def measured(name: str, contender: str) -> float:
    command = [sys.executable, "-m", "benchmarks.first_call", "--inside", contender, name]
    with tempfile.TemporaryDirectory() as folder:
        fresh = {"TRIVIUM_CACHE": f"{folder}/trivium", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | fresh)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(MARK))
    return float(line[len(MARK) :])


@click.command()
@click.option("--turns", default=3, show_default=True, help="Processes of each contender.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write all figures to this file.")
@click.option("--inside", "contender", hidden=True, help="Measure in this process, and print the seconds.")
@click.argument("names", nargs=-1)
def main(turns: int, path: Path | None, contender: str | None, names: tuple[str, ...]) -> None:
    """Measures the programs whose name contains one of NAMES, or all."""
    if contender is not None:
        inside(names[0], contender)
        return
    seconds: dict[str, dict[str, list[float]]] = {}
    table = Table("program", *COLUMNS, "ratio")
    for name, contenders in CONTENDERS.items():
        if names and not any(part in name for part in names):
            continue
        rounds = [{each: measured(name, each) for each in contenders} for _ in range(turns)]
        seconds[name] = {each: [times[each] for times in rounds] for each in contenders}
        ours, peer = seconds[name]["trivium"], seconds[name][contenders[1]]
        cells = [f"{median(seconds[name][each]):.2f} s" if each in contenders else "" for each in COLUMNS]
        table.add_row(name, *cells, f"{median(p / o for o, p in zip(ours, peer, strict=True)):.2f}")
        print(name, seconds[name], file=sys.stderr)
    Console(width=130).print(table)
    if path is not None:
        path.write_text(json.dumps(seconds, indent=1) + "\n")


if __name__ == "__main__":
    main()
