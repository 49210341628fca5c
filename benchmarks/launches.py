"""Counts the kernel launches of models on a GPU, compared with TorchInductor; this needs no GPU:

python -m benchmarks.launches [name ...]

Ours are the launches and copies of the plan for an NVIDIA GPU. TorchInductor's are the kernels and library calls of
the code that it generates for a CPU, because it generates GPU code only on a machine with a GPU. A training step is a
forward and a backward pass, without an optimizer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.rows.models import Part, bert_base, resnet_50
from trivium.backends.cpu.client import CpuClient
from trivium.backends.gpu import nvptx
from trivium.backends.gpu.batches import batches
from trivium.backends.gpu.emission import Choices
from trivium.backends.gpu.schedule import Grid
from trivium.compiler.program import Copy, Launch, walk
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.func import Module

CALL = re.compile(
    r"^\s+(?:\w+ = )?(cpp_fused\w*|extern_kernels\.\w+|torch\.ops\.(?!inductor)\S+?|aten\.\w+)\(", re.MULTILINE
)

Run = Callable[[], object]


def launches(module: Module) -> int:
    """Returns the number of launches and copies of a module's plan for a GPU."""
    target = nvptx.target("sm_90")
    steps = Stages(module, target, CompileOptions()).program.steps
    grid = Choices(target).grid
    shared = list(batches(steps, grid, target))
    together = {step for members, _, _ in shared for step in members}
    groups = [batch for _, batch, _ in shared]
    groups += [(step,) for step in walk(steps) if isinstance(step, Launch) and step not in together]
    copies = sum(isinstance(step, Copy) and step not in together for step in walk(steps))
    return copies + sum(max(_count(grid(launch.kernel)) for launch in group) for group in groups)


def _count(grid: Grid) -> int:
    """Returns the launches of a kernel: two if several blocks share a row."""
    return min(2, grid.parts) if grid.shared else 1


def ours(run: Run) -> int:
    """Returns the launches of all programs that a run compiles."""
    modules: list[Module] = []
    compile_ = CpuClient.compile

    def recorded(self: CpuClient, module: Module, *options: Any, **named: Any) -> Any:
        modules.append(module)
        return compile_(self, module, *options, **named)

    with patch.object(CpuClient, "compile", recorded):
        run()
    return sum(map(launches, modules))


def theirs(run: Run) -> int:
    """Returns the kernels and library calls in the code that TorchInductor writes for a run."""
    from torch._inductor.utils import run_and_get_code

    _, codes = run_and_get_code(run)
    return sum(len(CALL.findall(code.partition("def call(")[2])) for code in codes)


def inference(example: Callable[[], Any], backend: str) -> Run:
    model, inputs = example()
    compiled = torch.compile(model.eval(), backend=backend)

    def run() -> object:
        with torch.no_grad():
            return compiled(*inputs)

    return run


def training(example: Callable[[], Any], backend: str) -> Run:
    model, inputs = example()
    compiled = torch.compile(model.train(), backend=backend)
    return lambda: compiled(*inputs).float().square().mean().backward()


def without_dropout() -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    inputs = torch.randint(0, 30_000, (1, 128)), torch.ones(1, 128, dtype=torch.int64)
    return Part(BertModel(config), "input_ids", "attention_mask"), inputs


MODELS: dict[str, tuple[Callable[[Any, str], Run], Any]] = {
    "BERT-base, 1 x 128": (inference, bert_base),
    "ResNet-50, 1 x 224 x 224": (inference, resnet_50),
    "BERT-base, training step": (training, without_dropout),
    "ResNet-50, training step": (training, resnet_50),
}


def main() -> None:
    print("| model | ours | TorchInductor |\n| --- | --- | --- |")
    for name, (make, example) in MODELS.items():
        if len(sys.argv) > 1 and not any(asked in name for asked in sys.argv[1:]):
            continue
        counts = []
        for backend, count in (("trivium", ours), ("inductor", theirs)):
            torch._dynamo.reset()
            torch.manual_seed(0)
            counts.append(count(make(example, backend)))
        print(f"| {name} | {counts[0]} | {counts[1]} |", flush=True)


if __name__ == "__main__":
    main()
