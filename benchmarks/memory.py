"""Whether resident memory stays constant: many calls from one thread, from eight threads that share one executable, and
buffers that are allocated and freed; and whether an aligned array of 1 GB is transferred to the device and back without
a copy.

JAX_PLATFORMS=trivium python benchmarks/memory.py [--calls 10000000]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

os.environ.setdefault("JAX_PLATFORMS", "trivium")

import jax
import numpy as np

THREADS = 8
MOST = 1.01
"""The largest factor by which memory may grow after the first tenth of the calls."""

GIGABYTE = 1 << 30
COPIED = GIGABYTE // 8
"""Bytes by which memory may grow while a gigabyte is transferred to the device and back."""


def resident() -> int:
    """Returns the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def growth(work: Callable[[int], object], calls: int) -> tuple[int, int]:
    """Returns the resident memory after a tenth of the calls, and after all of them."""
    work(max(1, calls // 10))
    before = resident()
    work(calls)
    return before, resident()


def calls_of_one_thread(calls: int) -> None:
    add, x = jax.jit(lambda x: x + 1), jax.numpy.ones(8)
    for _ in range(calls):
        add(x)


def calls_of_eight_threads(calls: int) -> None:
    add, x = jax.jit(lambda x: x * 2), jax.numpy.ones(8)
    add(x)

    def work(_: int) -> None:
        for _ in range(calls // THREADS):
            add(x)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def buffers_made_and_dropped(calls: int) -> None:
    host = np.ones((64, 64), np.float32)
    for _ in range(calls // 10):
        np.asarray(jax.device_put(host))


WORK = (calls_of_one_thread, calls_of_eight_threads, buffers_made_and_dropped)


def gigabyte_and_back() -> tuple[int, int]:
    """Returns the resident memory with an aligned gigabyte on the host, and after its transfer to the device and
    back."""
    memory = np.ones(GIGABYTE + 64, np.uint8)
    aligned = memory[-memory.ctypes.data % 64 :][:GIGABYTE]
    before = resident()
    device = jax.device_put(aligned)
    back = np.asarray(device)
    after = resident()
    assert back[-1] == 1
    return before, after


@click.command()
@click.option("--calls", default=10_000_000, show_default=True)
def main(calls: int) -> None:
    """Measures all cases; the exit code is the number of those that grow."""
    table = Table("work", "before", "after", "growth")
    grown = 0
    for work in WORK:
        before, after = growth(work, calls)
        grown += after > before * MOST
        table.add_row(work.__name__, f"{before >> 10} KiB", f"{after >> 10} KiB", f"{after / before - 1:+.2%}")
    before, after = gigabyte_and_back()
    grown += after > before + COPIED
    table.add_row("1 GB and back", f"{before >> 10} KiB", f"{after >> 10} KiB", f"{(after - before) >> 10} KiB")
    Console(width=120).print(table)
    sys.exit(grown)


if __name__ == "__main__":
    main()
