"""What the plugin adds to `import jax; jax.devices()`: processes with and without it, in turns.

python benchmarks/start.py [--turns 15]"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import click

WITHOUT = """
from importlib import metadata
found = metadata.entry_points
def others(**chosen):
    return () if chosen.get("group") == "jax_plugins" else found(**chosen)
metadata.entry_points = others
"""
START = "import jax; jax.devices()"
CONTENDERS = {
    "without the plugin": ("", WITHOUT + START),
    "with the plugin, JAX's CPU": ("", START),
    "with the plugin, Trivium": ("trivium", START),
}
"""The value of JAX_PLATFORMS, and a program."""


def seconds(platforms: str, program: str) -> tuple[float, float]:
    """Wall time and processor time of one process."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"JAX_PLATFORMS": platforms}, check=True)
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


@click.command()
@click.option("--turns", default=15, show_default=True)
def main(turns: int) -> None:
    """Prints the medians, and those of the differences from a process without the plugin in the same turn."""
    times = [{name: seconds(*contender) for name, contender in CONTENDERS.items()} for _ in range(turns)]
    base = next(iter(CONTENDERS))
    for name in CONTENDERS:
        for clock, which in enumerate(("wall", "processor")):
            median = statistics.median(turn[name][clock] for turn in times)
            added = statistics.median(turn[name][clock] - turn[base][clock] for turn in times)
            print(f"{name}: {median:.2f} s of {which} time, {added:+.3f} s")


if __name__ == "__main__":
    main()
