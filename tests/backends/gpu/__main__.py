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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", action="store_true", help="all records of ops")
    parser.add_argument("--programs", type=int, default=0, help="how many random programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first random program")
    parser.add_argument("--vectors", type=Path, help="StableHLO's test programs")
    parser.add_argument("--ptx", default="", help="an architecture such as sm_80: ptxas assembles all records")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    if given.records:
        wrong += _run("records", tasks.record, range(len(COMPILED)), given.jobs)
    if given.ptx:
        wrong += _run("ptx", tasks.ptx, [(given.ptx, number) for number in range(len(COMPILED))], given.jobs)
    if given.programs:
        wrong += _run("programs", tasks.program, range(given.seed, given.seed + given.programs), given.jobs)
    if given.vectors:
        wrong += _run("vectors", tasks.vector, sorted(given.vectors.glob("*.mlir")), given.jobs)
    return 1 if wrong else 0


def _run(name: str, task: Task, items: Sequence[Any], jobs: int) -> int:
    start, wrong = time.monotonic(), 0
    for item, told in outcomes(task, items, jobs):
        if told:
            wrong += 1
            print(f"{item}: {told}", flush=True)
    print(f"{name}: {len(items)}, of which {wrong} are wrong; {time.monotonic() - start:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
