"""A sample of the programs that `python -m tests.backends.gpu` runs on a device: records of ops, and random programs.
They run in a separate process, which a driver may end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.gpu import tasks
from tests.backends.gpu.workers import ENDED, Task, outcomes
from tests.compiler.lowering.coverage import COMPILED
from tests.compiler.test_conformance import TRUE_TRANSFORMS, WRONG

RECORDS, PROGRAMS, NEIGHBOURS, VECTORS = 90, 40, 6, 40


def wrong(task: Task, items: Sequence[Any]) -> list[str]:
    return [f"{item}: {outcome}" for item, outcome in outcomes(task, items) if outcome]


@pytest.mark.usefixtures("device")
def test_records() -> None:
    """One record of each op, among those that a seed selects."""
    order = np.random.default_rng(6).permutation(len(COMPILED))
    first = {COMPILED[number].op: int(number) for number in order}
    assert not wrong(tasks.record, sorted(first.values())[:: max(1, len(first) // RECORDS)])


@pytest.mark.usefixtures("device")
def test_random_programs() -> None:
    assert not wrong(tasks.program, range(7000, 7000 + PROGRAMS))
    assert not wrong(tasks.neighbours, range(NEIGHBOURS))


@pytest.mark.usefixtures("device")
def test_vectors(conformance: Path) -> None:
    """StableHLO's own programs, except those that expect wrong results."""
    paths = sorted((conformance / "stablehlo" / "testdata").glob("*.mlir"))
    chosen = [path for path in paths if path.stem not in WRONG | TRUE_TRANSFORMS]
    assert not wrong(tasks.vector, chosen[:: len(chosen) // VECTORS])


def test_workers_outlive_their_processes(tmp_path: Any) -> None:
    assert dict(outcomes(tasks.dies_once, [str(tmp_path / "died")])) == {str(tmp_path / "died"): ""}
    assert dict(outcomes(tasks.dies, range(4), jobs=2)) == {0: "", 1: ENDED, 2: "ValueError in dies: no", 3: ""}


def test_a_task_that_does_not_end_is_ended() -> None:
    assert dict(outcomes(tasks.does_not_end, range(2), limit=0.0)) == dict.fromkeys(range(2), "it did not end in 0 s")


def test_a_process_is_not_used_after_an_error() -> None:
    outcome = [text for _, text in outcomes(tasks.process, range(3), limit=600.0)]
    assert outcome[1] == outcome[2]
    assert outcome[0] != f"ValueError in process: {outcome[1]}"
