"""What only a GPU of NVIDIA's can tell: that LLVM's code and the driver's compiler do what the simulator does, and that
matrix instructions, asynchronous copies and atomic operations are as we read them. `pytest -m gpu` runs these tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.gpu import tasks
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_cuda import two_launches
from tests.backends.gpu.test_tensor_attention import TYPES
from tests.backends.gpu.test_tensor_attention import arguments as attention_arguments
from tests.backends.gpu.test_updates import ADD, arguments, scatter
from tests.backends.gpu.workers import Task, outcomes
from tests.compiler.attention import Case
from tests.compiler.lowering.coverage import COMPILED
from tests.compiler.lowering.test_scans import integers, running
from tests.compiler.lowering.test_sorting import TOTAL, sorted_pairs
from tests.compiler.test_conformance import TRUE_TRANSFORMS, WRONG
from trivium.backends import client
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.compiler.driver import CompileOptions
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.gpu


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> GpuClient:
    """The first GPU, also for tasks in other processes."""
    monkeypatch.setenv("TRIVIUM_TEST_DEVICE", "cuda:0")
    found = client("cuda:0")
    assert isinstance(found, GpuClient)
    return found


def wrong(task: Task, items: Sequence[Any]) -> list[str]:
    return [f"{item}: {told}" for item, told in outcomes(task, items, jobs=4) if told]


@pytest.mark.usefixtures("cuda")
def test_records() -> None:
    assert not wrong(tasks.record, range(len(COMPILED)))


@pytest.mark.usefixtures("cuda")
def test_random_programs() -> None:
    assert not wrong(tasks.program, range(300))


@pytest.mark.usefixtures("cuda")
def test_vectors(conformance: Path) -> None:
    paths = sorted((conformance / "stablehlo" / "testdata").glob("*.mlir"))
    assert not wrong(tasks.vector, [path for path in paths if path.stem not in WRONG | TRUE_TRANSFORMS])


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("layout", [(1, 0), (0, 0), (0, 1), (1, 1)])
def test_matrix_instructions(
    cuda: GpuClient, dtype: str, layout: tuple[int, int], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((size, 1),))
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    for shape in ((256, 256, 512), (1000, 200, 72), (65, 33, 17)):
        module, generator = product(*shape, layout, dtype, "negate"), np.random.default_rng(0)
        kinds = [argument.type for argument in module.main.body.arguments]
        given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
        executable = cuda.compile(module, CompileOptions(tf32=True))
        assert "matrix" in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
        np.testing.assert_array_equal(executable.execute(*given)[0], evaluate(module, *given)[0])


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("layout", [(1, 0), (0, 1), (1, 1)])
def test_hopper_s_instructions(
    cuda: GpuClient, dtype: str, layout: tuple[int, int], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums as long as a pipeline's stages, longer, and much longer; several blocks share those of the last product."""
    if not cuda.driver.target.warpgroup_instructions:
        pytest.skip("the device has no matrix instructions that four warps share")
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((size, 1),))
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    for shape in ((128, 128, 192), (1000, 200, 72), (1024, 1024, 1024), (65, 33, 17), (256, 256, 8192)):
        module, generator = product(*shape, layout, dtype, "negate"), np.random.default_rng(0)
        kinds = [argument.type for argument in module.main.body.arguments]
        given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
        executable = cuda.compile(module, CompileOptions(tf32=True))
        assert ")=128" in executable.artifact.texts["schedules"].partition("matrix")[2]  # type: ignore[attr-defined]
        expected = evaluate(module, *given)[0]
        for _ in range(3):
            np.testing.assert_array_equal(executable.execute(*given)[0], expected)


@pytest.mark.parametrize(("dtype", "exact"), [("i32", True), ("ui8", True), ("f32", True), ("f32", False)])
def test_scatters(cuda: GpuClient, dtype: str, exact: bool) -> None:
    module = scatter(dtype, ADD, 50_000, 100, 3)
    given = arguments(module, 1.5)
    (expected,) = evaluate(module, *given)
    executable = cuda.compile(module, CompileOptions(deterministic=exact))
    for (result,) in (executable.execute(*given) for _ in range(3)):
        if exact:
            np.testing.assert_array_equal(result, expected)
        else:
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-2)


def test_running_sums_and_sorts(cuda: GpuClient) -> None:
    numbers = integers(4_000_000)
    np.testing.assert_array_equal(cuda.compile(running(numbers, 0)).execute(numbers)[0], numbers.cumsum(dtype=np.int32))
    values = np.random.default_rng(0).integers(-9999, 9999, 1_000_000).astype(np.float32)
    results = cuda.compile(sorted_pairs(values.shape, 0, TOTAL)).execute(values)
    order = np.argsort(-values, kind="stable")
    np.testing.assert_array_equal(results[0], -values[order])
    np.testing.assert_array_equal(results[1], order)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mask", ["", "causal", "added", "bool"])
@pytest.mark.parametrize("width", [64, 128])
def test_attention(cuda: GpuClient, dtype: str, mask: str, width: int) -> None:
    case = Case(batch=2, queries=200, keys=333, depth=width, features=width, mask=mask, safe=True)
    given = attention_arguments(case, dtype)
    executable = cuda.compile(case.narrow(dtype))
    assert "matrix" in executable.artifact.texts["schedules"]  # type: ignore[attr-defined]
    # Matrix instructions round what they add up.
    np.testing.assert_allclose(executable.execute(*given)[0], case.expected(*given), rtol=2e-5, atol=2e-5)


def test_fences_between_blocks_that_share_a_tile(cuda: GpuClient) -> None:
    """The last block adds up what others have left in memory just before; a missing fence shows now and then."""
    module, generator = product(64, 64, 65_536), np.random.default_rng(0)
    kinds = [argument.type for argument in module.main.body.arguments]
    given = [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]  # type: ignore[union-attr]
    executable, expected = cuda.compile(module), evaluate(module, *given)[0]
    for _ in range(200):
        np.testing.assert_array_equal(executable.execute(*given)[0], expected)


def test_graphs_see_what_memory_holds_now(cuda: GpuClient) -> None:
    executable = cuda.load_program(two_launches())
    for turn in range(50):
        values = np.arange(300, dtype=np.float32) + turn
        np.testing.assert_array_equal(executable.execute(values)[0], values)
    graphs = [graph for graph in executable._recordings.values() if graph is not None]
    assert graphs


def test_pytorch_s_streams(cuda: GpuClient) -> None:
    """Two streams use one program, whose temporaries they share, behind work of PyTorch's own that takes long."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    compiled = torch.compile(lambda x: (x @ x).softmax(1).cumsum(0), backend="trivium", fullgraph=True)
    streams = [torch.cuda.Stream() for _ in range(2)]
    results, expected = [], []
    for turn in range(40):
        with torch.cuda.stream(streams[turn % 2]):
            x = torch.randn(300, 300, device="cuda")
            for _ in range(20):
                x = (x @ x).tanh()
            results.append(compiled(x))
            expected.append((x @ x).softmax(1).cumsum(0))
    torch.cuda.synchronize()
    assert max(float((a - b).abs().max()) for a, b in zip(results, expected, strict=True)) < 1e-3
