"""Schedules that are measured: every one computes the same program, the fastest is kept, and is used."""

from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.backends.cpu import tuning
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.contraction.constants import packed_launches
from trivium.backends.cpu.contraction.tiling import ESTIMATED, Knobs
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import host, level
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Launch, Program

RANDOM = np.random.default_rng(0)


def dot(rows: int, depth: int, columns: int, weights: np.ndarray | None = None) -> str:
    """A product with a bias; of two arguments, or with constant weights."""
    given = "%w: tensor<{1}x{2}xf32>, " if weights is None else ""
    constant = "" if weights is None else f'%w = stablehlo.constant dense<"0x{weights.tobytes().hex()}"> : {{W}}'
    text = f"""func.func @main(%x: tensor<{{0}}x{{1}}xf32>, {given}%b: {{R}}) -> {{R}} {{{{
      {constant}
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<{{0}}x{{1}}xf32>, {{W}}) -> {{R}}
      %1 = stablehlo.add %0, %b : {{R}}
      return %1 : {{R}}
    }}}}"""
    return text.format(rows, depth, columns, W=f"tensor<{depth}x{columns}xf32>", R=f"tensor<{rows}x{columns}xf32>")


def program(text: str) -> Program:
    return lower(optimize(trivium.parse(text), host()), host())


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shape", [(37, 300, 150), (128, 64, 512), (3, 1000, 70)])
@pytest.mark.parametrize("target", [host(), level("x86-64-v3")], ids=["host", "AVX2"])
def test_every_schedule_computes_the_same(shape: tuple[int, int, int], constant: bool, target: object) -> None:
    rows, depth, columns = shape
    x, w, b = (
        RANDOM.standard_normal(size).astype(np.float32) for size in ((rows, depth), (depth, columns), (rows, columns))
    )
    lowered = program(dot(rows, depth, columns, w if constant else None))
    (launch,) = (step for step in lowered.steps if isinstance(step, Launch))
    packed = packed_launches(lowered, target)
    operand = packed[launch].operand if packed else None
    found = tuning.candidates(launch, operand, target)
    assert next(iter(found)) == ESTIMATED
    assert len(found) > 1
    exact = x.astype(np.float64) @ w + b
    for knobs, candidate in found.items():
        (result,) = CpuExecutable(assemble_program(lowered, candidate)).execute(*([x, b] if constant else [x, w, b]))
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-3, err_msg=str(knobs))


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    monkeypatch.setattr(tuning, "_known", {})


@pytest.mark.usefixtures("empty")
def test_the_fastest_is_used_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fastest(launch: Launch, operand: str | None, target: object) -> Knobs:
        asked.append(launch.kernel.name)
        return Knobs(vectors=1)

    monkeypatch.setattr(tuning, "fastest", fastest)
    module = trivium.parse(dot(40, 50, 640))
    plain = trivium.compile(module, threads=1)
    run = trivium.compile(module, threads=1, autotune=True)
    schedules = [x.loaded.artifact.texts["schedules"] for x in (plain, run)]
    assert f"x{host().vector_bytes // 4}, blocks" in schedules[1]
    assert schedules[0] != schedules[1]
    arguments = [RANDOM.standard_normal(size).astype(np.float32) for size in ((40, 50), (50, 640), (40, 640))]
    np.testing.assert_allclose(run(*arguments)[0], plain(*arguments)[0], rtol=1e-4, atol=1e-4)

    monkeypatch.setattr(tuning, "_known", {})
    trivium.compile(trivium.parse(dot(40, 50, 640) + "// the same kernel"), threads=1, autotune=True)
    assert len(asked) == 1


@pytest.mark.usefixtures("empty")
def test_measuring() -> None:
    lowered = program(dot(64, 64, 256))
    (launch,) = (step for step in lowered.steps if isinstance(step, Launch))
    assert tuning.fastest(launch, None, host()) in tuning.candidates(launch, None, host())


def test_pytorch_takes_the_option() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(8, 4).eval()
    x = torch.ones(2, 8)
    with torch.no_grad():
        compiled = torch.compile(model, backend="trivium", options={"autotune": True})
        torch.testing.assert_close(compiled(x), model(x))
