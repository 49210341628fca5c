"""Code for NVIDIA GPUs: ptxas accepts it without spilling registers, and the same modules, run on a simulator,
compute the interpreter's results."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.backends.gpu import simulator, tasks
from tests.backends.gpu.simulator import needs_simulator
from tests.compiler.lowering.coverage import COMPILED, expect_equal, lowered
from trivium.backends.gpu.assembly import assembler, emit_program
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx, emitted_for, target
from trivium.ir.errors import Error

ASSEMBLED, SIMULATED = 12, 80


def sample(count: int) -> list[int]:
    """Returns the numbers of records of different ops."""
    order = np.random.default_rng(11).permutation(len(COMPILED))
    return list({COMPILED[number].op: int(number) for number in order}.values())[:count]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is part of CUDA, which is not installed")
def test_ptxas_spills_nothing(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    kernels = "\n".join(filter(None, (tasks.ptx((architecture, number)) for number in sample(ASSEMBLED))))
    assert kernels
    assert not tasks.beyond_budget(kernels)


@needs_simulator
def test_the_same_modules_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    with simulator.opened() as device:
        client = GpuClient(device, 0)
        for record in (COMPILED[number] for number in sample(SIMULATED)):
            results = client.load_program(lowered(record, device.target)).execute(*record.arrays)
            expect_equal(record, record.module(), results)


@pytest.mark.parametrize("op", ["shift_left", "shift_right_logical"])
def test_amounts_of_wide_shifts_are_compared_as_a_whole(op: str) -> None:
    """LLVM would drop the comparison, and then shift by the lower half of the amount."""
    facts, dialect = target("sm_80"), Nvptx()
    (record,) = (one for one in COMPILED if str(one).startswith(f"{op}-36xui64"))
    emitted = emit_program(lowered(record, facts), dialect, facts)
    assert b"setp.lt.u64" in assembler().compile(emitted.text, dialect.assembling(facts))


def test_unknown_architectures() -> None:
    with pytest.raises(Error, match="unknown architecture 'sm_10', expected one of sm_80"):
        target("sm_10")


@pytest.mark.parametrize(
    ("capability", "architecture"), [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90a"), ((12, 0), "sm_100")]
)
def test_code_is_emitted_for_the_newest_architecture_that_runs_there(
    capability: tuple[int, int], architecture: str
) -> None:
    assert emitted_for(*capability) == architecture


def test_old_devices_are_refused() -> None:
    with pytest.raises(Error, match=r"compute capability 7\.5 is too old, expected at least 8\.0"):
        emitted_for(7, 5)
