"""Runs architectures of Hugging Face's transformers through `torch.compile(backend="trivium")`, and compares with
PyTorch without a compiler.

python -m tests.suites.transformers --page docs/transformers.md

Results of several calls are joined in one file, from which the page is written."""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]

Results = dict[str, dict[str, str]]
"""By architecture: the outcome of inference and of training."""

OPENING = """# Architectures of transformers

What `python -m tests.suites.transformers` found, with transformers {transformers} and PyTorch {torch}: a small model of
each architecture with random weights, compiled by `torch.compile(backend="trivium")`, against PyTorch without a
compiler: the output of inference, and the gradients of a step of training. *Equal* is to {tolerance} of the largest
element. *With ops in PyTorch*: some have no rule, and run between compiled parts. This page is generated.

| architecture | inference | training |
|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.transformers", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of architectures")
    parser.add_argument("--results", type=Path, default=ROOT / "out/transformers/results.json")
    parser.add_argument("--page", type=Path, help="write the page there")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    results: Results = json.loads(options.results.read_text()) if options.results.exists() else {}
    for name in [] if options.page_only else chosen(options.only):
        results[name] = outcomes(name)
        print(name, results[name], flush=True)
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(results, indent=1))
    if options.page is not None:
        options.page.write_text("\n".join(page(results)) + "\n")


def chosen(only: list[str] | None) -> list[str]:
    from tests.suites.transformers.architectures import ARCHITECTURES

    return [entry.name for entry in ARCHITECTURES if only is None or entry.name in only]


def outcomes(name: str) -> dict[str, str]:
    from tests.suites.transformers.architectures import ARCHITECTURES
    from tests.suites.transformers.models import inference, training

    (architecture,) = [entry for entry in ARCHITECTURES if entry.name == name]
    return {kind.__name__: _outcome(lambda kind=kind: kind(architecture)) for kind in (inference, training)}


class _Heard(logging.Handler):
    """Keeps the messages of the adapter."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage().partition(", aten")[2] or record.getMessage())


def _outcome(run: Callable[[], float]) -> str:
    from tests.suites.transformers.models import TOLERANCE
    from trivium import torch as adapter

    adapter._warned.clear()  # each op is told once
    heard, logger, start = _Heard(), logging.getLogger("trivium.torch"), time.monotonic()
    logger.addHandler(heard)
    try:
        difference = run()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"failed: {type(error).__name__}: {(lines or [''])[0][:150]}"
    finally:
        logger.removeHandler(heard)
        print(f"  {time.monotonic() - start:.0f} s", *sorted(set(heard.messages)), sep="; ", flush=True)
    within = "equal" if difference <= TOLERANCE else f"differs by {difference:.1e}"
    return f"{within}, with ops in PyTorch" if heard.messages else within


def page(results: Results) -> Iterator[str]:
    import torch
    import transformers

    from tests.suites.transformers.architectures import ARCHITECTURES
    from tests.suites.transformers.models import TOLERANCE

    yield OPENING.format(transformers=transformers.__version__, torch=torch.__version__, tolerance=TOLERANCE)
    for architecture in ARCHITECTURES:
        found = results.get(architecture.name)
        if found is not None:
            yield f"| {architecture.name} | {found['inference']} | {found['training']} |"


if __name__ == "__main__":
    main()
