"""The time that a process takes which is not the first one to compile a program: from the module, as it was read from a
file, to the first result. BERT-base with random weights, in new processes: one with an empty cache, then others with
the entries that it left.

python benchmarks/second_process.py [--processes 5] [--threads 2] [--json out/times.json] [--program model.mlirbc]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import click
from rich.console import Console
from rich.table import Table

AT_MOST = 0.7
"""Seconds that a second process may take."""


def measure(program: str, threads: int | None) -> dict[str, float]:
    """Returns the seconds of each step, in this process."""
    import numpy as np

    import trivium

    begin = perf_counter()
    module = trivium.load(program)
    loaded = perf_counter()
    run = trivium.compile(module, threads=threads)
    compiled = perf_counter()
    arguments = [np.ones(parameter.type.static_shape, parameter.type.dtype) for parameter in run.signature.arguments]
    run(*arguments)
    first = perf_counter()
    run(*arguments)
    return {
        "load": loaded - begin,
        "compile": compiled - loaded,
        "first run": first - compiled,
        "second run": perf_counter() - first,
        "module to result": first - loaded,
    }


def in_fresh_process(program: Path, threads: int | None, cache: str) -> dict[str, float]:
    """Returns the seconds of each step, measured in another process."""
    command = [sys.executable, __file__, "--measure", "--program", str(program)]
    command += [] if threads is None else ["--threads", str(threads)]
    environment = {**os.environ, "TRIVIUM_CACHE": cache}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def save_bert(path: Path) -> None:
    """Writes BERT-base to a file, in a separate process, because PyTorch takes much memory."""
    source = (
        "import sys, torch, trivium; from benchmarks.rows.models import bert_base; torch.set_grad_enabled(False); "
        "model, inputs = bert_base(); trivium.from_torch(model.eval(), inputs).save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", source, str(path)], cwd=Path(__file__).parents[1], check=True)


@click.command()
@click.option("--processes", default=5, show_default=True, help="Processes that find the program compiled.")
@click.option("--threads", type=int, help="Threads of a run; all of the machine's if left out.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the figures to this file.")
@click.option("--program", type=click.Path(path_type=Path), help="A .mlirbc file to take instead of BERT-base.")
@click.option("--measure", "inside", is_flag=True, hidden=True, help="Print the figures of this process.")
def main(processes: int, threads: int | None, path: Path | None, program: Path | None, inside: bool) -> None:
    """Measures the first process that compiles a program, and others after it."""
    if inside:
        print(json.dumps(measure(str(program), threads)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if program is None:
            program = Path(folder) / "bert.mlirbc"
            save_bert(program)
        cold = in_fresh_process(program, threads, f"{folder}/cache")
        warm = [in_fresh_process(program, threads, f"{folder}/cache") for _ in range(processes)]
    table = Table("step", "first process", f"median of {processes} others", "fastest")
    for step, seconds in cold.items():
        others = [figures[step] for figures in warm]
        table.add_row(step, *(f"{value:.3f} s" for value in (seconds, median(others), min(others))))
    Console(width=120).print(table)
    print(f"module to result takes at most {AT_MOST} s in a process that is not the first")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cold": cold, "warm": warm}, indent=2))


if __name__ == "__main__":
    main()
