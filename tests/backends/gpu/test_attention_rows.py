"""Attention whose greatest scores and sums of weights are results: a training step keeps them for its gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.backends.gpu import simulator
from tests.backends.gpu.simulator import needs_simulator
from tests.backends.gpu.test_tensor_attention import arguments
from tests.compiler.attention import Case, changed
from tests.garbage import collected
from trivium.backends.gpu.client import GpuClient
from trivium.compiler.driver import CompileOptions
from trivium.compiler.fusion import fuser
from trivium.ir.interpreter import evaluate

CASE = Case(queries=40, keys=70, mask="bool", safe=True, rows=True)


@needs_simulator
@pytest.mark.parametrize(
    ("capability", "dtype", "case"),
    [
        (8, "f32", CASE),
        (8, "f32", replace(CASE, features=150, mask="added")),
        (8, "bf16", CASE),
        (9, "bf16", CASE),
        (9, "f16", replace(CASE, mask="")),
    ],
)
def test_rows_are_results(monkeypatch: pytest.MonkeyPatch, capability: int, dtype: str, case: Case) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    fake = simulator.fake()
    fake.fake_reset(0, 0)
    fake.fake_capability(capability, 0)
    plain = dtype == "f32"
    module, given = (case.module(), case.arguments()) if plain else (case.narrow(dtype), arguments(case, dtype))
    given[0][0, 0, 1], given[0][0, 1, 2] = np.nan, -0.0
    with simulator.opened() as opened, collected():
        executable = GpuClient(opened, 0).compile(module, CompileOptions())
        assert executable.artifact.texts["schedules"].count(": schedule") == 1  # type: ignore[attr-defined]
        for result, expected in zip(executable.execute(*given), evaluate(module, *given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=4e-6, atol=6e-6)
    fake.fake_reset(0, 0)


@needs_simulator
def test_logarithms_before_another_layout_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch writes a training step: what is computed from rows comes before the end of the kernel of attention."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    fake, case = simulator.fake(), replace(CASE, mask="added")
    fake.fake_reset(0, 0)
    fake.fake_capability(9, 0)
    row, out, turned = "tensor<1x2x40xf32>", "tensor<1x2x40x36xf32>", "tensor<1x40x2x36xf32>"
    module = changed(
        case.text(),
        (f"-> ({out}, {row}, {row})", f"-> ({turned}, {row})"),
        (
            f"return %o, %m, %s : {out}, {row}, {row}",
            f"""%log = stablehlo.log %s : {row}
            %logs = stablehlo.add %log, %shift : {row}
            %turned = stablehlo.transpose %o, dims = [0, 2, 1, 3] : ({out}) -> {turned}
            return %turned, %logs : {turned}, {row}""",
        ),
    )
    given = case.arguments()
    monkeypatch.setattr(fuser, "SMALL", 0)
    with simulator.opened() as opened, collected():
        executable = GpuClient(opened, 0).compile(module, CompileOptions())
        assert executable.artifact.texts["schedules"].count(": schedule") == 2  # type: ignore[attr-defined]
        for result, expected in zip(executable.execute(*given), evaluate(module, *given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=4e-6, atol=6e-6)
    fake.fake_reset(0, 0)
