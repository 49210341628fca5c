"""The steps of the demo: train, convert, read back in a fresh process, compare, measure, report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

# Before a framework is loaded: JAX on the CPU only, TensorFlow without its start-up messages.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import trivium
from trivium.backends import client
from trivium.backends.timeline import Timed
from trivium.commands.bench import measure
from trivium.commands.demo.contestant import Contestant
from trivium.commands.demo.data import Digits, batches_in_all, load_digits
from trivium.executable import Executable
from trivium.ir.errors import Error
from trivium.page import frame_of
from trivium.page.tags import every_op
from trivium.report import Row, write_report

LEAST_ACCURACY = 0.97
LARGEST_DIFFERENCE = 1e-4
SECONDS_EACH = 1.0


def run(output: Path, device: str = "cpu") -> None:
    """Runs the demo, and writes programs and the report to the folder `output`. The converted models run on `device`.
    Raises an `Error` if a model fails its thresholds."""
    # Wide enough for the table if the output is not a terminal.
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"cannot create the folder {output}: {error.strerror}") from None
    backend = client(device)  # an unknown device is an error now, not after the training
    digits = load_digits()
    contestants = _train_all(digits, output, console)
    np.save(output / "images.npy", digits.test_images)
    rows = [_compare(entry, digits, output, console, device) for entry in contestants]
    console.print(_table(rows))
    for note in (note for entry in contestants for note in entry.notes):
        console.print(note)
    report = output / "report.html"
    elsewhere = "" if backend.platform_name == "cpu" else f"{device} ({backend.devices[0].kind})"
    write_report(report, "One program from three frameworks", rows, elsewhere)
    console.print(f"Wrote the programs and {report}.")
    _judge(rows, output)


Outcome = TypeVar("Outcome")


def _train_all(digits: Digits, output: Path, console: Console) -> list[Contestant]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:

        def trained(name: str, contest: Callable[[Digits, Callable[[], None]], Outcome]) -> Outcome:
            task = progress.add_task(f"training in {name} through Trivium", total=batches_in_all(digits))
            return contest(digits, lambda: progress.advance(task))

        # Each framework is imported just before its turn, so that the first bar starts immediately.
        from trivium.commands.demo import pytorch

        first, model = trained("PyTorch", pytorch.contest)
        from trivium.commands.demo import tensorflow

        second = trained("TensorFlow", tensorflow.contest)
        from trivium.commands.demo import jax

        third = trained("JAX", jax.contest)
        onnx = Contestant("ONNX", pytorch.through_onnx(model, digits, output / "model.onnx"), first.eager)
        onnx.notes.append("ONNX: the PyTorch model again, through torch.onnx.export; eager is PyTorch's.")
    return [first, second, third, onnx]


def _compare(entry: Contestant, digits: Digits, output: Path, console: Console, device: str) -> Row:
    path = output / f"{entry.framework.lower()}.mlir"
    entry.module.verify()
    entry.module.save(path)
    with console.status(f"{entry.framework}: reading {path} in a fresh process, measuring"):
        logits = _in_fresh_process(path, output, device)
        expected = entry.eager()
        compiled = trivium.compile(trivium.load(path), device=device)
        images = digits.test_images.reshape(compiled.signature.arguments[0].type.static_shape)
        calls = {"trivium": lambda: compiled(images), "eager": entry.eager}
        if entry.compiled is not None:
            calls["compiler"] = entry.compiled
        timings = {name: median for name, (median, _) in measure(calls, SECONDS_EACH).items()}
    return Row(
        framework=entry.framework,
        ops_before=len(every_op(entry.module)),
        ops_after=len(every_op(compiled.graph)),
        kernels=len(compiled.program.kernels()),
        accuracy=float((logits.argmax(1) == digits.test_labels).mean()),
        difference=float(np.abs(logits - expected).max() / np.abs(expected).max()),
        eager=timings["eager"],
        compiler=timings.get("compiler"),
        compiler_name=entry.compiler,
        trivium=timings["trivium"],
        page=_page(entry.framework, compiled, images),
    )


def _page(title: str, compiled: Executable, images: np.ndarray) -> str:
    """Returns the program's page as an element, with times if the device has a clock for each step."""
    profile = compiled.profile(images) if isinstance(compiled.loaded, Timed) else None
    page = compiled.page(profile=profile)
    page.title, page.small = title, True
    return frame_of(page)


def _in_fresh_process(path: Path, output: Path, device: str) -> np.ndarray:
    """Runs the file in another process through the command line, without any framework, and returns the logits."""
    result = output / f"{path.stem}.npz"
    command = [sys.executable, "-m", "trivium", "run", str(path), "--input", str(output / "images.npy")]
    command += ["--reshape", "--save", str(result), "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(f"running {path} in a fresh process ended with {done.returncode}: {done.stderr.strip()}")
    with np.load(result) as arrays:
        return arrays["0"]


def _table(rows: list[Row]) -> Table:
    table = Table("framework", title="360 test images in one batch; latency is the median of interleaved runs")
    for column in ("ops", "optimized", "kernels", "accuracy", "difference", "eager", "its compiler", "Trivium"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.framework, *row.cells())
    return table


def _judge(rows: list[Row], output: Path) -> None:
    for row in rows:
        if row.accuracy < LEAST_ACCURACY:
            raise Error(f"{row.framework} has accuracy {row.accuracy:.4f}, expected at least {LEAST_ACCURACY}")
        if not row.difference <= LARGEST_DIFFERENCE:
            error = Error(f"{row.framework} differs by {row.difference:.2e}, expected at most {LARGEST_DIFFERENCE:g}")
            error.advice = (
                f"trivium debug accuracy {output / row.framework.lower()}.mlir, which names the op that is wrong"
            )
            raise error
