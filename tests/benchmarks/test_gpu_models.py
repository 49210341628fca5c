"""The benchmark of models on a GPU: what it runs and compares, on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from click import ClickException
from click.testing import CliRunner
from torch import nn

from benchmarks import gpu_models
from benchmarks.gpu_workloads import Workload

pytestmark = pytest.mark.torch


def small():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), (torch.ones(2, 6),)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("trains", [False, True])
def test_contenders_are_compared_and_measured(monkeypatch: pytest.MonkeyPatch, trains: bool, dtype: Any) -> None:
    monkeypatch.setitem(gpu_models.WORKLOADS, "small", Workload(small, trains, dtype))
    waited = []
    times = gpu_models.measured("small", ("trivium", "eager"), "cpu", lambda: waited.append(1), 0.0)
    assert set(times) == {"trivium", "eager"}
    assert min(times.values()) > 0
    assert waited


def test_a_wrong_result_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu_models.WORKLOADS, "small", Workload(small))
    monkeypatch.setattr(gpu_models, "difference", lambda found, expected: float("nan"))
    with pytest.raises(ClickException, match="small: trivium differs by nan of the largest element"):
        gpu_models.measured("small", ("trivium", "eager"), "cpu", lambda: None, 0.0)


def test_a_failing_model_is_reported_and_the_next_one_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(name: str, *_: object) -> dict[str, float]:
        if name == "none":
            raise ImportError("there is no such model")
        return {gpu_models.OURS: 2e-3, gpu_models.PEER: 3e-3}

    monkeypatch.setattr(gpu_models, "WORKLOADS", dict.fromkeys(("none", "small"), Workload(small)))
    monkeypatch.setattr(gpu_models, "measured", measured)
    monkeypatch.setattr(gpu_models, "round_to_tf32", lambda allowed: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    told = CliRunner().invoke(gpu_models.main, ["--limit", "0"])
    assert "| none | ImportError: there is no such model | |" in told.output
    assert "| small | 2.00 ms | 1.50 |" in told.output
    assert told.exit_code == 1
    assert "not measured: none\n" in told.output


@pytest.mark.parametrize("allowed", [True, False])
def test_both_round_or_none(allowed: bool) -> None:
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    # PyTorch's own test modules, if other tests have loaded them, forbid changes of flags outside of this context.
    with torch.backends.__allow_nonbracketed_mutation():
        try:
            torch.backends.cudnn.allow_tf32 = not allowed
            gpu_models.round_to_tf32(allowed)
            assert gpu_models.rounds_to_tf32() is allowed
            assert torch.backends.cudnn.allow_tf32 is allowed
        finally:
            torch.backends.cudnn.allow_tf32 = before[0]
            torch.set_float32_matmul_precision(before[1])


def test_differences() -> None:
    assert gpu_models.difference([torch.tensor([1.0, 2.0])], [torch.tensor([1.0, 4.0])]) == 0.5


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch finds a GPU here")
def test_without_a_gpu() -> None:
    told = CliRunner().invoke(gpu_models.main, [])
    assert told.exit_code == 1
    assert "PyTorch finds no GPU, so there is nothing to measure" in told.output
