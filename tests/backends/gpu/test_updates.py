"""Scatters on a device of OpenCL and on the simulator, where another thread may come between any load and the store
that follows: updates by atomic operations, and by the owners of elements, which keep their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import trivium
from tests.backends.gpu.simulator import needs_simulator
from trivium.backends.gpu import nvptx, thread_emitter
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.schedule import choose
from trivium.compiler.driver import CompileOptions
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.program import Launch
from trivium.compiler.stages import Stages
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

ANY_ORDER = CompileOptions(deterministic=False)


def scatter(dtype: str, body: str, places: int, elements: int, window: int = 1) -> Module:
    """Returns a scatter of rows of `window` elements to listed places, some of which are outside."""
    x, u = (f"tensor<{n}x{window}x{dtype}>" for n in (elements, places))
    return trivium.parse(f"""func.func @main(%x: {x}, %i: tensor<{places}x1xi32>, %u: {u}) -> {x} {{
      %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
        %r = {body} : tensor<{dtype}>
        stablehlo.return %r : tensor<{dtype}>
      }}) : ({x}, tensor<{places}x1xi32>, {u}) -> {x}
      return %0 : {x}
    }}""")


def arguments(module: Module, spread: float = 9.0) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    x, i, u = (argument.type for argument in module.main.body.arguments)
    values = [(spread * generator.standard_normal(kind.static_shape)).astype(kind.dtype) for kind in (x, u)]  # type: ignore[union-attr]
    places = generator.integers(-1, x.static_shape[0] + 1, i.static_shape, np.int32)  # type: ignore[union-attr]
    return [values[0], places, values[1]]


def schedule_of(module: Module, **options: bool) -> str:
    target = nvptx.target("sm_80")
    (step,) = (s for s in Stages(module, target, CompileOptions()).program.steps if isinstance(s, Launch))
    return str(choose(step.kernel, replace(target, **options), Analysis(step.kernel)))


ADD, MULTIPLY, LARGEST = (f"stablehlo.{name} %a, %b" for name in ("add", "multiply", "maximum"))
SET = "stablehlo.add %b, %b"


@pytest.mark.parametrize(
    ("dtype", "body", "window"),
    [
        ("i32", ADD, 1), ("i64", ADD, 37), ("ui8", ADD, 1), ("i16", ADD, 37), ("i32", MULTIPLY, 1), ("i8", LARGEST, 1),
        ("ui32", LARGEST, 37), ("f32", LARGEST, 37), ("f64", LARGEST, 1), ("bf16", LARGEST, 1),
        ("i1", "stablehlo.xor %a, %b", 1),
    ],
)  # fmt: skip
def test_integers_and_extremes_are_atomic(client: GpuClient, dtype: str, body: str, window: int) -> None:
    module = scatter(dtype, body, 300, 19, window)
    assert "atomic" in schedule_of(module)
    given = arguments(module)
    np.testing.assert_array_equal(client.compile(module).execute(*given)[0], evaluate(module, *given)[0])


@pytest.mark.parametrize("window", [1, 37])
@pytest.mark.parametrize(("dtype", "body"), [("f32", ADD), ("f16", ADD), ("f64", MULTIPLY), ("i32", SET)])
def test_floats_are_updated_in_order(client: GpuClient, dtype: str, body: str, window: int) -> None:
    """So is everything else whose order can be observed: results are those of the interpreter, bit for bit."""
    module = scatter(dtype, body, 300, 19, window)
    assert "owners" in schedule_of(module)
    given = arguments(module, 1.5)
    np.testing.assert_array_equal(client.compile(module).execute(*given)[0], evaluate(module, *given)[0])


@pytest.mark.parametrize(("dtype", "error"), [("f32", 1e-5), ("f64", 1e-13), ("f16", 3e-2), ("bf16", 0.2)])
def test_floats_in_any_order(client: GpuClient, dtype: str, error: float) -> None:
    module = scatter(dtype, ADD, 300, 19, 5)
    given = arguments(module, 0.5)
    exact = scatter("f64", ADD, 300, 19, 5)
    (expected,) = evaluate(exact, *(a if a.dtype == np.int32 else a.astype(np.float64) for a in given))
    (result,) = client.compile(module, ANY_ORDER).execute(*given)
    np.testing.assert_allclose(result.astype(np.float64), expected, atol=error, rtol=error)


def test_schedules() -> None:
    assert "parallel 300 grid(0)=1 block(0)=256 atomic(0)=1\n  parallel 37 grid(0)=1" in schedule_of(
        scatter("i32", ADD, 300, 19, 37)
    )
    assert "parallel 300 grid()=1 block(0)=256 owners(0)=16\n  parallel 37 grid(0)=1" in schedule_of(
        scatter("f32", ADD, 300, 19, 37)
    )
    assert "atomic" in schedule_of(scatter("f32", ADD, 300, 19, 37), deterministic=False)


@needs_simulator
def test_what_is_not_atomic_is_lost(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    module, client = scatter("i32", ADD, 300, 19), GpuClient(simulated_device, 0)
    given = arguments(module)
    monkeypatch.setattr(thread_emitter.GpuEmitter, "_update_atomically", thread_emitter.Emitter._update)
    assert (client.compile(module).execute(*given)[0] != evaluate(module, *given)[0]).any()


@pytest.mark.parametrize(
    ("window", "strides", "padding", "counts"),
    [
        ((3, 2), (2, 1), ((1, 1), (0, 1)), (5, 7)),  # windows overlap
        ((2, 2), (3, 2), ((0, 0), (0, 0)), (3, 3)),  # some elements are in none
        ((2, 1), (2, 1), ((2, 1), (0, 0)), (6, 7)),  # some windows have no element
    ],
)
def test_windows_that_select_an_element(
    client: GpuClient,
    window: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[tuple[int, int], tuple[int, int]],
    counts: tuple[int, int],
) -> None:
    x, g = "tensor<9x7xf32>", f"tensor<{counts[0]}x{counts[1]}xf32>"
    module = trivium.parse(f"""func.func @main(%x: {x}, %g: {g}, %first: tensor<f32>) -> {x} {{
      %0 = "stablehlo.select_and_scatter"(%x, %g, %first) <{{
        window_dimensions = array<i64: {window[0]}, {window[1]}>,
        window_strides = array<i64: {strides[0]}, {strides[1]}>,
        padding = dense<{list(map(list, padding))}> : tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }}) : ({x}, {g}, tensor<f32>) -> {x}
      return %0 : {x}
    }}""")
    generator = np.random.default_rng(0)
    given = [generator.integers(-2, 3, (9, 7)), generator.standard_normal(counts), np.array(0.5)]
    given = [array.astype(np.float32) for array in given]
    np.testing.assert_array_equal(client.compile(module).execute(*given)[0], evaluate(module, *given)[0])
