"""Tests for an NVIDIA GPU besides records and random programs: whether matrix instructions, asynchronous copies, atomic
operations and fences behave as we understand their documentation. Each task returns what is wrong, like those of
`tasks.py`: after a failed kernel, a process cannot use its GPU any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.backends.gpu.tasks import device
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_cuda import two_launches
from tests.backends.gpu.test_tensor_attention import arguments as attention_arguments
from tests.backends.gpu.test_updates import ADD, arguments, scatter
from tests.compiler.attention import Case
from tests.compiler.lowering.test_scans import integers, running
from tests.compiler.lowering.test_sorting import TOTAL, sorted_pairs
from trivium.backends.gpu import tiles
from trivium.backends.gpu.executable import GpuExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def compiled(module: Module, **options: Any) -> GpuExecutable:
    executable = device().compile(module, CompileOptions(**options))
    assert isinstance(executable, GpuExecutable)
    return executable


def numbers(module: Module) -> list[np.ndarray]:
    """Returns arguments that are small integers, of which all sums are exact."""
    generator = np.random.default_rng(0)
    kinds: list[Any] = [argument.type for argument in module.main.body.arguments]
    return [generator.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]


def unequal(results: np.ndarray, expected: np.ndarray) -> str:
    return "" if np.array_equal(results, expected) else f"{np.mean(results != expected):.2%} of the elements are wrong"


Product = tuple[tuple[int, int, int], str, tuple[int, int], int, str]
"""Extents, type, layout, the columns of a tile, and what the schedule must contain."""


def matrix_instructions(item: Product) -> str:
    """Compares a product, which is computed three times."""
    shape, dtype, layout, size, expected = item
    on = device()
    tiles.TENSOR_TILES = ((size, 1),)
    tiles.WIDE_LEAST = 1 if size == max(tiles.WIDE_TILES[0]) else tiles.LARGEST
    tiles.WIDE_WASTE = float("inf")
    tiles.THREADS_ROUND = True
    module = product(*shape, layout, dtype, "negate")
    given = numbers(module)
    executable = compiled(module, tf32=True)
    used = executable.artifact.texts["schedules"].partition("matrix")[2]
    if not used or expected not in used:
        return f"{on.driver.kind} computes it without its matrix instructions"
    wanted = evaluate(module, *given)[0]
    return next(filter(None, (unequal(executable.execute(*given)[0], wanted) for _ in range(3))), "")


def scatters(item: tuple[str, bool, int]) -> str:
    """Compares sums that many elements are added to: `exact` ones, or those of atomic operations."""
    dtype, exact, count = item
    module = scatter(dtype, ADD, count, 100, 3)
    given = arguments(module, 1.5)
    (expected,) = evaluate(module, *given)
    executable = compiled(module, deterministic=exact)
    for (result,) in (executable.execute(*given) for _ in range(3)):
        if exact and (difference := unequal(result, expected)):
            return difference
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-2)
    return ""


def running_sums(count: int) -> str:
    given = integers(count)
    return unequal(compiled(running(given, 0)).execute(given)[0], given.cumsum(dtype=np.int32))


def sorts(count: int) -> str:
    values = np.random.default_rng(0).integers(-9999, 9999, count).astype(np.float32)
    results = compiled(sorted_pairs(values.shape, 0, TOTAL)).execute(values)
    order = np.argsort(-values, kind="stable")
    return unequal(results[0], -values[order]) or unequal(results[1], order)


def attention(item: tuple[str, str, int, int, int]) -> str:
    dtype, mask, width, queries, keys = item
    case = Case(batch=2, queries=queries, keys=keys, depth=width, features=width, mask=mask, safe=True)
    given = attention_arguments(case, dtype)
    executable = compiled(case.narrow(dtype))
    if "matrix" not in executable.artifact.texts["schedules"]:
        return "it is computed without matrix instructions"
    # Matrix instructions round what they add up.
    np.testing.assert_allclose(executable.execute(*given)[0], case.expected(*given), rtol=2e-5, atol=2e-5)
    return ""


def fences(item: tuple[int, int]) -> str:
    """Blocks that share a tile: the last one adds up what others have left in memory just before. A missing fence shows
    now and then."""
    depth, turns = item
    module = product(64, 64, depth, epilogue="negate")
    given = numbers(module)
    executable, expected = compiled(module), evaluate(module, *given)[0]
    return next(filter(None, (unequal(executable.execute(*given)[0], expected) for _ in range(turns))), "")


def graphs(turns: int) -> str:
    """Graphs see what memory holds now."""
    executable = device().load_program(two_launches())
    for turn in range(turns):
        values = np.arange(300, dtype=np.float32) + turn
        if difference := unequal(executable.execute(values)[0], values):
            return difference
    return "" if any(graph is not None for graph in executable._recordings.values()) else "there is no graph"


def streams(turns: int) -> str:
    """Two of PyTorch's streams use one program, whose temporaries they share, behind work of PyTorch's own that takes
    long."""
    import torch

    ours = torch.compile(lambda x: (x @ x).softmax(1).cumsum(0), backend="trivium", fullgraph=True)
    theirs = [torch.cuda.Stream() for _ in range(2)]
    results, expected = [], []
    for turn in range(turns):
        with torch.cuda.stream(theirs[turn % 2]):
            x = torch.randn(300, 300, device="cuda")
            for _ in range(20):
                x = (x @ x).tanh()
            results.append(ours(x))
            expected.append((x @ x).softmax(1).cumsum(0))
    torch.cuda.synchronize()
    error = max(float((a - b).abs().max()) for a, b in zip(results, expected, strict=True))
    return "" if error < 1e-3 else f"results differ by {error:.2g}"


def one(item: tuple[str, Any]) -> str:
    """Runs the task of that name, so that one process can run several."""
    name, own = item
    return globals()[name](own)
