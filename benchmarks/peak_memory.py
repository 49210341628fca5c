"""The memory that programs need beyond their arguments, results and constants, compared with XLA's for the same
StableHLO:

python -m benchmarks.peak_memory [--keep] [--json out/memory.json] [name ...]

Planned bytes are those of `memory_analysis()`: the temporaries of a run, with the workspaces of its kernels. Resident
bytes are measured: by how much the process grows at most during a run, less the results. Both contenders have a process
of their own for each program. XLA's plan has neither the workspaces of its kernels nor what its libraries allocate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.memory_programs import PROGRAMS
from benchmarks.memory_report import keep, table

CONTENDERS = "trivium", "xla"
MARK = "measured: "


def resident(run: Callable[[], Any]) -> int:
    """Returns the largest number of bytes by which the process grows during a run."""
    status = Path("/proc/self/status")

    def field(name: str) -> int:
        (line,) = (line for line in status.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) << 10

    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes the present size
    before = field("VmRSS")
    run()
    return field("VmHWM") - before


def arguments_of(module: Any) -> list[Any]:
    """Returns arrays that are written in full, so that their pages are there before the run."""
    import numpy as np

    rng = np.random.default_rng(0)
    found = []
    for value in module.main.arguments:
        kind = value.type.dtype
        numbers = rng.random(value.type.static_shape, np.float32)
        found.append((numbers if np.issubdtype(kind, np.inexact) else 0 * numbers).astype(kind))
    return found


def ours(module: Any, arguments: Sequence[Any]) -> dict[str, int]:
    import trivium

    run = trivium.compile(module)
    stats = run.memory_analysis()
    grown = resident(lambda: run(*arguments))
    return {"planned": stats.temp_size_in_bytes, "resident": grown - stats.output_size_in_bytes}


def compiled_by_xla(text: str) -> Any:
    """Returns XLA's executable of a program in StableHLO, for the CPU."""
    from jax.extend import backend as backends
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    client = backends.get_backend("cpu")
    devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
    return client.compile_and_load(text, devices, _jax.CompileOptions())


def xla(module: Any, arguments: Sequence[Any]) -> dict[str, int]:
    import jax

    loaded = compiled_by_xla(module.text(elide=False))
    stats = loaded.get_compiled_memory_stats()
    inputs = [jax.block_until_ready(jax.device_put(array, jax.devices("cpu")[0])) for array in arguments]

    def run() -> None:
        for shards in loaded.execute_sharded(inputs).disassemble_into_single_device_arrays():
            shards[0].block_until_ready()

    grown = resident(run)
    return {"planned": stats.temp_size_in_bytes, "resident": grown - stats.output_size_in_bytes}


def inside(name: str, contender: str) -> None:
    """Measures one contender in this process, and prints its figures."""
    module = PROGRAMS[name]()
    measure = ours if contender == "trivium" else xla
    print(MARK + json.dumps(measure(module, arguments_of(module))), flush=True)


def measured(name: str, contender: str) -> dict[str, int]:
    command = [sys.executable, "-m", "benchmarks.peak_memory", "--inside", contender, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(MARK))
    return json.loads(line[len(MARK) :])


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write all figures to this file.")
@click.option("--keep", "kept", is_flag=True, help="Keep the figures, for the page `docs/memory.md`.")
@click.option("--inside", "contender", hidden=True, help="Measure in this process, and print the figures.")
@click.argument("names", nargs=-1)
def main(path: Path | None, kept: bool, contender: str | None, names: tuple[str, ...]) -> None:
    """Measures the programs whose name contains one of NAMES, or all."""
    if contender is not None:
        inside(names[0], contender)
        return
    rows = {}
    for name in PROGRAMS:
        if not names or any(part in name for part in names):
            rows[name] = {contender: measured(name, contender) for contender in CONTENDERS}
            print(name, rows[name], file=sys.stderr)
    Console(width=130).print(table(rows))
    if kept:
        keep(rows)
    if path is not None:
        path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
