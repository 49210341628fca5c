"""Everything that can be tried on a device, in worker processes:

python -m tests.backends.gpu --records --programs 2000 --vectors FOLDER --jobs 2
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.backends.gpu import tasks
from tests.backends.gpu.workers import Task, outcomes
from tests.compiler.lowering.coverage import COMPILED

LISTED = 20
"""The number of kernels whose figures are printed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", action="store_true", help="all records of ops")
    parser.add_argument("--programs", type=int, default=0, help="how many random programs")
    parser.add_argument("--neighbours", type=int, default=0, help="how many programs whose kernels share launches")
    parser.add_argument("--attention", type=int, default=0, help="how many programs with attention of narrow numbers")
    parser.add_argument("--tf32", type=int, default=0, help="how many programs with attention of f32 that is rounded")
    parser.add_argument("--products", type=int, default=0, help="how many programs of products, rounded to tf32 if f32")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first random program")
    parser.add_argument("--vectors", type=Path, help="StableHLO's test programs")
    parser.add_argument(
        "--ptx",
        default="",
        help="an architecture such as sm_80: ptxas assembles all records, and the registers of the largest are listed",
    )
    parser.add_argument(
        "--code-objects", default="", help="an architecture such as gfx90a: the same with LLVM's assembler and linker"
    )
    parser.add_argument("--spirv-val", action="store_true", help="judge the modules of all records for OpenCL")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    if given.records:
        wrong += _run("records", tasks.record, range(len(COMPILED)), given.jobs)
    if given.spirv_val:
        wrong += _run("modules", tasks.spirv, range(len(COMPILED)), given.jobs)
    if given.ptx:
        wrong += _assemble(tasks.ptx, given.ptx, given.jobs)
    if given.code_objects:
        wrong += _assemble(tasks.code_object, given.code_objects, given.jobs)
    if given.programs:
        wrong += _run("programs", tasks.program, range(given.seed, given.seed + given.programs), given.jobs)
    if given.neighbours:
        seeds = range(given.seed, given.seed + given.neighbours)
        wrong += _run("neighbours", tasks.neighbours, seeds, given.jobs)
    if given.attention:
        seeds = range(given.seed, given.seed + given.attention)
        wrong += _run("attention", tasks.attention, seeds, given.jobs)
    if given.tf32:
        wrong += _run("tf32", tasks.wide_attention, range(given.seed, given.seed + given.tf32), given.jobs)
    if given.products:
        wrong += _run("products", tasks.products, range(given.seed, given.seed + given.products), given.jobs)
    if given.vectors:
        wrong += _run("vectors", tasks.vector, sorted(given.vectors.glob("*.mlir")), given.jobs)
    return 1 if wrong else 0


def _run(name: str, task: Task, items: Sequence[Any], jobs: int) -> int:
    start, wrong = time.monotonic(), 0
    for item, outcome in outcomes(task, items, jobs):
        if outcome:
            wrong += 1
            print(f"{item}: {outcome}", flush=True)
    print(f"{name}: {len(items)}, of which {wrong} are wrong; {time.monotonic() - start:.0f} s", flush=True)
    return wrong


def _assemble(task: Task, architecture: str, jobs: int) -> int:
    """Lists the kernels of records that take most registers, after those that are beyond the budget. Returns how many
    are, or are refused."""
    start, kernels, refused = time.monotonic(), list[str](), 0
    for (_, number), outcome in outcomes(task, [(architecture, n) for n in range(len(COMPILED))], jobs):
        if outcome and not outcome[0].isdecimal():
            refused += 1
            print(f"{COMPILED[number]}: {outcome[:600]}", flush=True)
        elif outcome:
            kernels += outcome.splitlines()
    kernels.sort(key=lambda line: int(line.split(" ")[0]), reverse=True)
    wrong = tasks.beyond_budget("\n".join(kernels))
    print("registers, bytes spilled, bytes shared, record and kernel:", *wrong, *kernels[:LISTED], sep="\n")
    middle = kernels[len(kernels) // 2].split(" ")[0] if kernels else 0
    print(f"{architecture}: {len(kernels)} kernels, {middle} registers in the middle, ", end="")
    print(f"{len(wrong)} beyond the budget, {refused} refused; {time.monotonic() - start:.0f} s", flush=True)
    return len(wrong) + refused


if __name__ == "__main__":
    sys.exit(main())
