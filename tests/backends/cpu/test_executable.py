"""Executables: which arguments they accept and which they refuse, who owns the memory of results, and that several
threads may run one at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT
from trivium.backends.cpu.client import CpuLoadedExecutable
from trivium.backends.cpu.executable import CpuExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import ExecutionError
from trivium.ir.types import type_of

TEXT = """func.func @main(%x: tensor<3x4xf32>, %n: tensor<i32>) -> (tensor<3x4xf32>, tensor<i32>) {
  %0 = stablehlo.add %x, %x : tensor<3x4xf32>
  %1 = stablehlo.add %n, %n : tensor<i32>
  return %0, %1 : tensor<3x4xf32>, tensor<i32>
}"""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
N = np.array(21, np.int32)


def compiled(text: str, **options: object) -> CpuLoadedExecutable:
    module = trivium.parse(text)
    executable = CLIENT.compile(module, CompileOptions(**options))  # type: ignore[arg-type]
    assert isinstance(executable, CpuLoadedExecutable)
    return executable


@pytest.fixture(scope="module")
def twice() -> CpuLoadedExecutable:
    return compiled(TEXT)


ALIKE: dict[str, Callable[[], object]] = {
    "columns first": lambda: np.asfortranarray(X),
    "every second": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
    "spread": lambda: np.broadcast_to(np.float32(5), (3, 4)),
    "lists": lambda: X.astype(np.float32).tolist(),
    "read-only": lambda: np.frombuffer(X.tobytes(), np.float32).reshape(3, 4),
    "unaligned": lambda: np.frombuffer(b"?" + X.tobytes(), np.float32, 12, 1).reshape(3, 4),
    "a subclass": lambda: X.view(type("Own", (np.ndarray,), {})),
    "big-endian": lambda: X.astype(">f4"),
}
REFUSED = {"lists": "has dtype float64, expected float32", "big-endian": "has dtype >f4, expected float32"}


@pytest.mark.parametrize("name", ALIKE)
def test_arrays_in_other_memory(name: str, twice: CpuLoadedExecutable) -> None:
    """Arrays are read as NumPy reads them, never in the wrong order; other types are not converted."""
    argument = ALIKE[name]()
    if name in REFUSED:
        with pytest.raises(ExecutionError, match=f"argument 0 of main {REFUSED[name]}"):
            twice.execute(argument, N)
        return
    kept = np.array(argument)
    np.testing.assert_array_equal(twice.execute(argument, N)[0], 2 * kept)
    np.testing.assert_array_equal(argument, kept)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "main was given 0 arguments, expected 2"),
        ((X, N, N), "main was given 3 arguments, expected 2"),
        ((X.T, N), r"argument 0 of main has shape \(4, 3\), expected \(3, 4\)"),
        ((X[None], N), r"argument 0 of main has shape \(1, 3, 4\)"),
        ((X.astype(np.float64), N), "argument 0 of main has dtype float64, expected float32"),
        ((X.astype(np.int32), N), "argument 0 of main has dtype int32"),
        ((X, N.astype(np.int64)), "argument 1 of main has dtype int64, expected int32"),
        ((X, 1.5), "argument 1 of main has dtype float64"),
        ((X, 2**31), "argument 1 of main has 2147483648, which int32 cannot hold"),
        ((X, N[None]), r"argument 1 of main has shape \(1,\)"),
        ((None, N), "argument 0 of main has dtype object"),
        ((np.ma.masked_array(X), N), "argument 0 of main is a masked array"),
    ],
)
def test_wrong_arguments(arguments: tuple[object, ...], reason: str, twice: CpuLoadedExecutable) -> None:
    with pytest.raises(ExecutionError, match=reason):
        twice.execute(*arguments)


def test_numbers_of_python_take_the_type_of_the_argument(twice: CpuLoadedExecutable) -> None:
    result = twice.execute(X, 21)[1]
    assert (result.dtype, result.shape, result.item()) == (np.int32, (), 42)


def test_results_are_the_callers_own(twice: CpuLoadedExecutable) -> None:
    first, second = twice.execute(X, N)[0], twice.execute(X, N)[0]
    first[:] = -1
    assert second.flags.owndata
    assert second.flags.writeable
    np.testing.assert_array_equal(second, 2 * X)
    np.testing.assert_array_equal(twice.execute(X, N)[0], 2 * X)


def test_results_that_are_arguments_or_each_other_do_not_share_memory() -> None:
    """The results are not the program's constants either."""
    kind = "tensor<4xf32>"
    run = compiled(f"""func.func @main(%x: {kind}) -> ({kind}, {kind}, {kind}, {kind}) {{
      %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : {kind}
      return %x, %x, %c, %c : {kind}, {kind}, {kind}, {kind}
    }}""")
    x = np.full(4, 7, np.float32)
    for _ in range(2):
        results = run.execute(x)
        for result, wanted in zip(results, ([7] * 4, [7] * 4, [1, 2, 3, 4], [1, 2, 3, 4]), strict=True):
            assert result.tolist() == wanted
            result[:] = -1
    assert x.tolist() == [7] * 4


TYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float64, np.complex64, np.complex128]
TYPES += [ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_types_and_shapes(dtype: type, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    kind = type_of(x)
    run = compiled(f"func.func @main(%x: {kind}) -> {kind} {{\n  return %x : {kind}\n}}")
    (result,) = run.execute(x)
    assert (result.dtype, result.shape) == (x.dtype, x.shape)
    assert result.tobytes() == x.tobytes()


def test_runs_on_memory_of_the_callers(twice: CpuLoadedExecutable) -> None:
    results = [np.full((3, 4), -1, np.float32), np.array(-1, np.int32)]
    twice.execute_at([array.ctypes.data for array in (X, N, *results)])
    np.testing.assert_array_equal(results[0], 2 * X)
    assert results[1] == 42


MATRICES = """func.func @main(%x: tensor<150x200xf32>, %y: tensor<200x100xf32>) -> tensor<150x100xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<150x200xf32>, tensor<200x100xf32>) -> tensor<150x100xf32>
  %1 = stablehlo.tanh %0 : tensor<150x100xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<150x100xf32>
  return %2 : tensor<150x100xf32>
}"""


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_run_one_executable_at_once(threads: int) -> None:
    """Each run has separate memory, which is kept for later runs: as many pieces as there were runs at the same
    time."""
    run, random = compiled(MATRICES, threads=threads), np.random.default_rng(0)
    pairs = [
        (random.standard_normal((150, 200), np.float32), random.standard_normal((200, 100), np.float32))
        for _ in range(4)
    ]
    wanted = [run.execute(*pair)[0] for pair in pairs]
    total = pairs[0][0] @ pairs[0][1]
    np.testing.assert_allclose(wanted[0], total * np.tanh(total), rtol=1e-4, atol=1e-4)
    wrong = []

    def work(number: int) -> None:
        for _ in range(40):
            if not np.array_equal(run.execute(*pairs[number])[0], wanted[number]):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert 1 <= len(run._frames) <= 4


def test_a_frame_is_kept_when_a_run_fails(twice: CpuLoadedExecutable) -> None:
    twice.execute(X, N)
    frames = len(twice._frames)
    with pytest.raises(ExecutionError):
        twice.execute(X)
    assert len(twice._frames) == frames


def test_more_memory_than_there_is() -> None:
    """Memory for results, and for the program's own use."""
    artifact = compiled(TEXT).artifact
    slot = replace(artifact.outputs[0], shape=(1 << 50, 1 << 10))
    with pytest.raises(ExecutionError, match="main needs more memory than is available"):
        CpuExecutable(replace(artifact, outputs=(slot, artifact.outputs[1]))).execute(X, N)
    with pytest.raises(ExecutionError, match="main needs more memory than is available"):
        CpuExecutable(replace(artifact, arena_size=1 << 60)).execute(X, N)


def test_a_whole_artifact_holds_its_constants() -> None:
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    run = compiled(f"""func.func @main(%x: tensor<100x64xf32>) -> tensor<100x64xf32> {{
      %w = stablehlo.constant dense<"0x{weights.tobytes().hex()}"> : tensor<64x64xf32>
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<100x64xf32>, tensor<64x64xf32>) -> tensor<100x64xf32>
      return %0 : tensor<100x64xf32>
    }}""")
    assert not run.artifact.is_whole
    whole = run.whole()
    assert whole.is_whole
    x = np.random.default_rng(1).standard_normal((100, 64)).astype(np.float32)
    np.testing.assert_array_equal(CpuExecutable(whole).execute(x)[0], run.execute(x)[0])


def test_booleans_of_any_bytes() -> None:
    """Every byte but 0 is true, in vectors and in single elements."""
    run = compiled("""
    func.func @main(%x: tensor<100xi1>, %y: tensor<i1>) -> (tensor<100xui8>, tensor<100xi1>, tensor<i32>) {
      %0 = stablehlo.convert %x : (tensor<100xi1>) -> tensor<100xui8>
      %1 = stablehlo.not %x : tensor<100xi1>
      %2 = stablehlo.convert %y : (tensor<i1>) -> tensor<i32>
      return %0, %1, %2 : tensor<100xui8>, tensor<100xi1>, tensor<i32>
    }""")
    given = np.arange(100, dtype=np.uint8)
    numbers, inverse, single = run.execute(given.view(bool), given[96:97].view(bool).reshape(()))
    np.testing.assert_array_equal(numbers, given != 0)
    np.testing.assert_array_equal(inverse.view(np.uint8), given == 0)
    assert single == 1
