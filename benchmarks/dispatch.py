"""What JAX pays for each call, on Trivium's device beside its own CPU platform: programs that compute next to nothing,
arrays that come from the host, and arrays that go back. One process has both platforms, which take turns; what counts
is the median of the ratios of neighbours.

python benchmarks/dispatch.py [--rounds 30] [--json out/dispatch.json]"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

os.environ["JAX_PLATFORMS"] = "trivium,cpu"

import jax
import jax.numpy as jnp
import numpy as np

MOST = 1.0
"""What a call may take at most, in times of JAX's CPU platform."""

CALLS = 1000
"""In a row, for one measurement."""

Call = Callable[[], object]


def contenders(device: jax.Device) -> dict[str, Call]:
    """What is measured, on a device."""
    host = np.ones(8, np.float32)
    large = np.ones((1024, 256), np.float32)
    x, y = jax.device_put(host, device), jax.device_put(large, device)
    many = [jax.device_put(host, device) for _ in range(64)]
    add, tree = jax.jit(lambda x: x + 1), jax.jit(lambda xs: [x + 1 for x in xs])
    return {
        "x + 1, 8 elements": lambda: add(x),
        "x + 1, 8 elements, awaited": lambda: add(x).block_until_ready(),
        "x + 1, 8 elements, to NumPy": lambda: np.asarray(add(x)),
        "x + 1, 64 arrays of 8 elements": lambda: tree(many)[0].block_until_ready(),
        "x + 1, 1 MB, awaited": lambda: add(y).block_until_ready(),
        "device_put, 8 elements": lambda: jax.device_put(host, device),
        "device_put, 1 MB": lambda: jax.device_put(large, device),
        "jnp.sin, 8 elements, not in jit": lambda: jnp.sin(x),
    }


def seconds(call: Call) -> float:
    """Of one call, out of many in a row."""
    begin = time.perf_counter()
    for _ in range(CALLS - 1):
        call()
    jax.block_until_ready(call())
    return (time.perf_counter() - begin) / CALLS


@click.command()
@click.option("--rounds", default=30, show_default=True, help="Pairs of measurements.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write all values, in seconds, to it.")
def main(rounds: int, path: Path | None) -> None:
    """Measures the calls."""
    platforms = "trivium", "cpu"
    calls = {platform: contenders(jax.devices(platform)[0]) for platform in platforms}
    found: dict[str, dict[str, list[float]]] = {}
    table = Table("call", "Trivium", "JAX's CPU", "ratio", "at most")
    for name in track(calls["cpu"], console=Console(stderr=True), transient=True):
        times = found[name] = {platform: [] for platform in platforms}
        for turn in range(rounds + 1):
            for platform in platforms:
                taken = seconds(calls[platform][name])
                if turn:  # the first one compiles, and fills caches
                    times[platform].append(taken)
        ratio = statistics.median(ours / other for ours, other in zip(*times.values(), strict=True))
        ours, other = (f"{1e6 * statistics.median(times[platform]):.1f} us" for platform in platforms)
        table.add_row(name, ours, other, f"{ratio:.2f}", f"{MOST:.2f}")
    Console(width=120).print(table)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
