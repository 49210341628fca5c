"""Pages of large programs: how long writing takes, how large they are, and how soon a browser shows them and what is
selected. BERT-base and ResNet-50 as PyTorch has them, and a training step of GPT-2 in JAX; each page has a profile.
Needs playwright and Chromium.

python benchmarks/pages.py [--program bert] [--runs 3] [--json out/pages.json] [--keep folder]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import click
from rich.console import Console
from rich.table import Table

LIMITS = {"written": 3.0, "megabytes": 6.0, "first view": 1.5, "selecting": 0.1}
"""What is allowed: seconds, and 10^6 bytes."""

SOURCES = {
    "bert": "from benchmarks.rows.models import bert_base as example",
    "resnet": "from benchmarks.rows.models import resnet_50 as example",
    "gpt2": "from benchmarks.gpt2 import training_step; training_step().save(sys.argv[1])",
}
FROM_TORCH = "model, inputs = example(); trivium.from_torch(model.eval(), inputs).save(sys.argv[1])"
ROOT = Path(__file__).parents[1]


def save(name: str, path: Path) -> None:
    """Writes a program to a file, in a separate process, because frameworks take much memory."""
    source = f"import sys, trivium; {SOURCES[name]}"
    if "example" in source:
        source = f"import torch; torch.set_grad_enabled(False); {source}; {FROM_TORCH}"
    subprocess.run([sys.executable, "-c", source, str(path)], cwd=ROOT, check=True)


def write(program: Path, page: Path, runs: int) -> dict[str, float]:
    """Returns the seconds that writing a page takes: those of the clock and those that the processor worked."""
    import numpy as np

    import trivium

    run = trivium.compile(trivium.load(program))
    arguments = [np.zeros(parameter.type.static_shape, parameter.type.dtype) for parameter in run.signature.arguments]
    profile = run.profile(*arguments, runs=2)
    wall, processor = [], []
    for _ in range(runs):
        begin, worked = perf_counter(), process_time()
        run.show(page, profile=profile)
        wall.append(perf_counter() - begin)
        processor.append(process_time() - worked)
    return {"written": min(wall), "processor": min(processor), "megabytes": page.stat().st_size / 1e6}


OPENED = """() => new Promise((done) => {
  const wait = () => document.querySelector("main") ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(wait, 1);
  wait();
})"""  # noqa: E501
SELECTED = """async () => {
  const times = [], random = (n) => Math.floor(Math.random() * n);
  for (let i = 0; i < 60; i++) {
    const stage = trivium.model.stages[i % trivium.model.stages.length];
    if (!stage.items.length) continue;
    const begin = performance.now();
    trivium.select([stage.items[random(stage.items.length)]]);
    document.body.getBoundingClientRect();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - begin);
  }
  return times;
}"""


def opened(page: Path, runs: int) -> dict[str, float]:
    """Returns the seconds from opening a page to its first view, and from a selection to what it shows."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    first, selecting = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(runs):
            view = browser.new_page(viewport={"width": 1500, "height": 850})
            view.goto(page.as_uri(), wait_until="commit")
            first.append(view.evaluate(OPENED) / 1e3)
            selecting += [time / 1e3 for time in view.evaluate(SELECTED)]
            view.close()
        browser.close()
    return {"first view": median(first), "selecting": median(selecting), "slowest selection": max(selecting)}


@click.command()
@click.option("--program", "names", multiple=True, type=click.Choice(list(SOURCES)), help="Only these.")
@click.option("--runs", default=3, show_default=True, help="How often each is written, and opened.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the figures to this file.")
@click.option("--keep", type=click.Path(path_type=Path), help="A folder for programs and pages, to use them again.")
@click.option("--inside", nargs=2, type=click.Path(path_type=Path), hidden=True, help="Write a page in this process.")
def main(
    names: tuple[str, ...], runs: int, path: Path | None, keep: Path | None, inside: tuple[Path, Path] | None
) -> None:
    """Measures the pages; fails if a limit is exceeded."""
    if inside is not None:
        print(json.dumps(write(*inside, runs)))
        return
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name in names or SOURCES:
            program, page = place / f"{name}.mlirbc", (place / f"{name}.html").resolve()
            if not program.exists():
                save(name, program)
            command = [sys.executable, __file__, "--runs", str(runs), "--inside", str(program), str(page)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
            found[name] = json.loads(done.stdout.splitlines()[-1]) | opened(page, runs)
    table = Table("page", *next(iter(found.values())))
    for name, figures in found.items():
        table.add_row(name, *(f"{value:.2f}" for value in figures.values()))
    Console(width=120).print(table)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2))
    over = [f"{name}: {what}" for name, figures in found.items() for what in LIMITS if figures[what] > LIMITS[what]]
    if over:
        raise click.ClickException("over the limit: " + ", ".join(over))


if __name__ == "__main__":
    main()
