"""Programs whose sizes change with every call. Each call computes with several batches, and each contender gets the
same ones, one after another; the first calls, in which programs are compiled, are not measured."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

import trivium
from benchmarks.row import OURS, Call, Row
from benchmarks.rows.models import Part
from benchmarks.rows.with_torch import Example, begin, session

BATCHES = 8
"""How many batches one call computes with."""

FIRST = 60
"""How many calls come first, in which programs are compiled."""


def mini() -> Any:
    from transformers import BertConfig

    return BertConfig(hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4)


def bert_mini() -> Example:
    from transformers import BertModel

    inputs = torch.randint(0, 30_000, (2, 17)), torch.ones(2, 17, dtype=torch.int64)
    return Part(BertModel(mini()), "input_ids", "attention_mask"), inputs


def texts(most: int = 4, least: int = 1, shortest: int = 5) -> Iterator[tuple[torch.Tensor, ...]]:
    """Batches of some texts, of up to 128 tokens."""
    random = torch.Generator().manual_seed(0)
    while True:
        ends = (least, most + 1), (shortest, 129)
        batch, length = (int(torch.randint(*each, (), generator=random)) for each in ends)
        ids = torch.randint(0, 30_000, (batch, length), generator=random)
        yield ids, torch.ones_like(ids)


def calls(
    runs: dict[str, Callable[..., Any]], batches: Callable[[], Iterator[tuple[torch.Tensor, ...]]]
) -> dict[str, Call]:
    """Returns calls of contenders, whose results are compared here: later, they do not have the same batches."""

    def call(run: Callable[..., Any]) -> Callable[[], torch.Tensor]:
        drawn = batches()

        @torch.no_grad()
        def several() -> torch.Tensor:
            return torch.cat([torch.as_tensor(run(*next(drawn))).flatten() for _ in range(BATCHES)])

        return several

    made = {name: call(run) for name, run in runs.items()}
    for _ in range(FIRST):
        ours, *others = (run() for run in made.values())
        for other in others:
            torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-3)
    return dict(made)


def any_texts(threads: int) -> dict[str, Call]:
    """Through `torch.compile`."""
    model, _ = begin(bert_mini, threads)
    compiled = {OURS: torch.compile(model, backend="trivium", dynamic=True), "eager": model}
    return calls({**compiled, "inductor": torch.compile(model, dynamic=True)}, texts)


def steps_of_any_texts(threads: int) -> dict[str, Call]:
    """Training steps, with dropout: contenders have models of their own, which are not compared."""
    from transformers import BertForSequenceClassification

    def classifier() -> Example:
        return BertForSequenceClassification(mini()), ()

    model, _ = begin(classifier, threads)

    def trained(compiled: Callable[[torch.nn.Module], Any]) -> Call:
        own = copy.deepcopy(model).train()
        run, optimizer, drawn = compiled(own), torch.optim.SGD(own.parameters(), 1e-3), texts(least=4, shortest=17)

        def several() -> None:
            for ids, mask in itertools.islice(drawn, BATCHES):
                labels = ids[:, 0] % 2
                run(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
                optimizer.step()
                optimizer.zero_grad()

        for _ in range(FIRST // 2):
            several()
        return several

    return {
        OURS: trained(lambda own: torch.compile(own, backend="trivium", dynamic=True)),
        "eager": trained(lambda own: own),
        "inductor": trained(lambda own: torch.compile(own, dynamic=True)),
    }


def any_texts_of_onnx(threads: int) -> dict[str, Call]:
    """A model of ONNX with open sizes, called with arrays."""
    model, inputs = begin(bert_mini, threads)
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    program = torch.onnx.export(
        model, inputs, dynamo=True, verbose=False, dynamic_shapes=(({0: batch, 1: length},) * 2,)
    )
    assert program is not None
    ours = trivium.compile(trivium.from_onnx(program.model_proto), threads=threads)
    theirs = session(program.model_proto.SerializeToString(), threads)
    names = [x.name for x in theirs.get_inputs()]

    def runtime(*given: torch.Tensor) -> Any:
        return theirs.run(None, {name: x.numpy() for name, x in zip(names, given, strict=True)})[0]

    return calls({OURS: lambda *given: ours(*(x.numpy() for x in given))[0], "onnxruntime": runtime}, texts)


def chosen(module: type[torch.nn.Module], *shape: int) -> Callable[[int], dict[str, Call]]:
    """Elements or rows that are chosen by their values: their number depends on data."""

    def drawn() -> Iterator[tuple[torch.Tensor, ...]]:
        random = torch.Generator().manual_seed(0)
        kept = [torch.randn(shape, generator=random) for _ in range(BATCHES)]
        while True:
            yield from ((x,) for x in kept)

    return partial(_chosen, module, drawn)


def _chosen(
    module: type[torch.nn.Module], drawn: Callable[[], Iterator[tuple[torch.Tensor, ...]]], threads: int
) -> dict[str, Call]:
    def example() -> Example:
        return module(), ()

    model, _ = begin(example, threads)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        runs = {OURS: torch.compile(model, backend="trivium"), "eager": model, "inductor": torch.compile(model)}
        return calls(runs, drawn)


class Chosen(torch.nn.Module):
    """A layer on those rows whose first element is positive."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x[x[:, 0] > 0]).softmax(-1)


class Positive(torch.nn.Module):
    """The positive ones of some numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0]


ROWS = (
    Row("BERT-mini, texts of any length", any_texts, tolerance=None),
    Row("BERT-mini, texts of any length, ONNX", any_texts_of_onnx, tolerance=None),
    Row("BERT-mini step, texts of any length", steps_of_any_texts, tolerance=None),
    Row("a layer on chosen rows", chosen(Chosen, 2000, 128), tolerance=None),
    Row("positive ones of 1M", chosen(Positive, 1_000_000), tolerance=None),
)
