"""Code for NVIDIA's GPUs: ptxas accepts it without spilling registers, and the same modules, on a simulator, give what
the interpreter gives."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.backends.gpu import tasks
from tests.backends.gpu.simulator import Simulator, untouched
from tests.compiler.lowering.coverage import COMPILED, expect_equal, lowered
from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import target
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
    assert not [told for number in sample(ASSEMBLED) if (told := tasks.ptx((architecture, number)))]


def test_the_same_modules_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(Assembler, "compile", lambda self, text, how: untouched(text, how))
    client = GpuClient(Simulator(), 0)
    for record in (COMPILED[number] for number in sample(SIMULATED)):
        results = client.load_program(lowered(record, client.driver.target)).execute(*record.arrays)
        expect_equal(record, record.module(), results)


def test_unknown_architectures() -> None:
    with pytest.raises(Error, match="unknown architecture 'sm_10', expected one of sm_80"):
        target("sm_10")
