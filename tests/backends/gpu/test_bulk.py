"""Products whose factors Hopper itself copies to shared memory, in boxes, on the simulator, in which a box arrives as
late as it may, and is garbage before: shapes, layouts, batches, types, factors that cannot be copied so beside those
that can, launches that products share; and no count, barrier or wait may be missing where all warps multiply
(`test_producers.py` has blocks in which one warp only copies)."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivium
from tests.backends.gpu import products, simulator, tasks
from tests.backends.gpu.products import integers, of_integers, schedules, to_tf32
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_warpgroup import assembled, needs_ptxas, neighbours, one_after_the_other
from tests.garbage import collected
from tests.random_programs.programs import program_of_neighbours, program_of_products
from trivium.backends.gpu import assembly, nvptx, tiles
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.gpu.plan import TensorMap
from trivium.backends.llvm.code import Code
from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.compiler.stages import Stages
from trivium.ir.errors import ExecutionError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")

ROUNDED = CompileOptions(tf32=True)

BOTH = 2
"""The factors of a product."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuClient]:
    """A simulated GPU of compute capability 9.0, which must have nothing allocated at the end."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    reset()
    with simulator.opened() as opened, collected():
        yield GpuClient(opened, 0)
    assert simulator.fake().fake_live() == 0
    simulator.fake().fake_reset(0, 0)


def reset(fails_at: int = 0, code: int = 0) -> None:
    simulator.fake().fake_reset(fails_at, code)
    simulator.fake().fake_capability(9, 0)


def calls(name: str) -> int:
    return simulator.fake().fake_log().decode().split().count(name)


def compiled(client: GpuClient, module: Module, copied: int = BOTH) -> LoadedExecutable:
    """Returns a program, and checks that it copies `copied` factors in boxes."""
    executable = client.compile(module, ROUNDED)
    assert len(re.findall(r"bulk\([\d, ]+\)=128", schedules(executable))) == copied
    return executable


def expect_exact(client: GpuClient, module: Module, copied: int = BOTH) -> None:
    products.expect_exact(compiled(client, module, copied), module)


@pytest.mark.parametrize("shape", [(128, 128, 64), (72, 40, 24), (104, 200, 136)])
@pytest.mark.parametrize(
    ("dtype", "layout"), [("bf16", (1, 0)), ("f16", (0, 1)), ("bf16", (0, 0)), ("bf16", (1, 1)), ("f32", (1, 1))]
)
def test_shapes(client: GpuClient, tile: int, dtype: str, layout: tuple[int, int], shape: tuple[int, int, int]) -> None:
    expect_exact(client, product(*shape, layout, dtype, "negate"))


@pytest.mark.parametrize(("dtype", "sums"), [("i8", "i32"), ("ui8", "ui32")])
def test_integers(client: GpuClient, tile: int, dtype: str, sums: str) -> None:
    expect_exact(client, of_integers(100, 70, 208, (1, 1), dtype, sums))


@pytest.mark.parametrize(
    ("shape", "layout"),
    [((65, 136, 100), (1, 0)), ((100, 77, 72), (1, 0)), ((33, 40, 52), (0, 0))],
)
def test_one_factor_is_copied_by_threads(
    client: GpuClient, tile: int, shape: tuple[int, int, int], layout: tuple[int, int]
) -> None:
    """Lines that are no multiples of 16 bytes."""
    expect_exact(client, product(*shape, layout, "bf16", "negate"), copied=1)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_rounding(client: GpuClient, tile: int, dtype: str) -> None:
    module = product(100, 72, 80, (1, 1), dtype)
    generator = np.random.default_rng(3)
    given = [(generator.standard_normal(shape) / 4).astype(np.float32) for shape in ((100, 80), (72, 80))]
    given = [array.astype(kind.type.dtype) for array, kind in zip(given, module.main.arguments, strict=True)]  # type: ignore[union-attr]
    lhs, rhs = (to_tf32(a) if dtype == "f32" else a.astype(np.float64) for a in given)
    (result,) = compiled(client, module).execute(*given)
    np.testing.assert_allclose(result, np.tanh(lhs @ rhs.T), atol=2e-6)


@pytest.mark.parametrize(("dtype", "layout", "depth"), [("bf16", (1, 0), 2104), ("f32", (1, 1), 2100)])
def test_blocks_share_long_sums(client: GpuClient, dtype: str, layout: tuple[int, int], depth: int) -> None:
    module = product(40, 136, depth, layout, dtype, "negate")
    executable = compiled(client, module)
    assert f"reduction {depth} grid(0)=" in schedules(executable)
    given = integers(module)
    for _ in range(2):
        np.testing.assert_array_equal(executable.execute(*given)[0], evaluate(module, *given)[0])


def heads(transposed: str, extents: str) -> Module:
    """Returns scores of two batches and three heads, whose queries and keys are stored in another order."""
    x, t, z = "2x40x3x16xbf16", f"{extents}xbf16", "2x3x40x40xf32"
    return trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{x}>) -> tensor<{z}> {{
      %0 = stablehlo.transpose %x, dims = {transposed} : (tensor<{x}>) -> tensor<{t}>
      %1 = stablehlo.transpose %y, dims = {transposed} : (tensor<{x}>) -> tensor<{t}>
      %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
        : (tensor<{t}>, tensor<{t}>) -> tensor<{z}>
      %3 = stablehlo.negate %2 : tensor<{z}>
      return %3 : tensor<{z}>
    }}""")


def test_batches(client: GpuClient, tile: int) -> None:
    expect_exact(client, heads("[0, 2, 1, 3]", "2x3x40x16"))


def test_batches_with_one_factor_for_all(client: GpuClient, tile: int) -> None:
    x, y, z = "3x40x48xbf16", "48x72xbf16", "3x40x72xf32"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>, %z: tensor<72xf32>) -> tensor<{z}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      %1 = stablehlo.broadcast_in_dim %z, dims = [2] : (tensor<72xf32>) -> tensor<{z}>
      %2 = stablehlo.add %0, %1 : tensor<{z}>
      return %2 : tensor<{z}>
    }}""")
    expect_exact(client, module)


def test_kernels_of_convolutions(client: GpuClient, tile: int) -> None:
    """They are matrices; images are copied by threads."""
    x, y, z = "2x9x9x8xbf16", "3x3x8x24xbf16", "2x9x9x24xf32"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")
    expect_exact(client, module, copied=1)


# Launches


def test_products_share_a_launch(client: GpuClient, tile: int) -> None:
    module = neighbours()
    executable, given = compiled(client, module, copied=4), integers(module)
    reset()
    for result, expected in zip(executable.execute(*given), evaluate(module, *given), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert calls("cuLaunchKernel") == 1
    # One of the arrays is a factor of two products.
    assert calls("cuTensorMapEncodeTiled") == 5


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_whose_products_share_launches(
    client: GpuClient, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    assert not tasks.judged(client, program_of_neighbours(seed), seed)


def test_a_launch_takes_few_array_descriptors(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments have 4096 bytes."""
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    count, x, y, z = 10, "24x32xbf16", "32x16xbf16", "24x16xf32"
    given = ", ".join(f"%x{n}: tensor<{x}>, %y{n}: tensor<{y}>" for n in range(count))
    dots = "\n".join(
        f"%{n} = stablehlo.dot_general %x{n}, %y{n}, contracting_dims = [1] x [0] "
        f": (tensor<{x}>, tensor<{y}>) -> tensor<{z}>"
        for n in range(count)
    )
    names, kinds = ", ".join(f"%{n}" for n in range(count)), ", ".join([f"tensor<{z}>"] * count)
    module = trivium.parse(f"func.func @main({given}) -> ({kinds}) {{ {dots}\n return {names} : {kinds} }}")
    executable, arrays = compiled(client, module), integers(module)
    reset()
    for result, expected in zip(executable.execute(*arrays), evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert calls("cuTensorMapEncodeTiled") == 2 * count
    assert calls("cuLaunchKernel") == 2


@pytest.mark.parametrize("seed", range(8))
def test_random_products(client: GpuClient, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    assert not tasks.judged(client, program_of_products(seed), seed, ROUNDED)


def test_arrays_that_move(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are described again, also for graphs of the memory that they were in before."""
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    module = one_after_the_other()
    executable = compiled(client, module, copied=2 * BOTH)
    given = [integers(module), [array + 1 for array in integers(module)]]
    buffers = [[client.buffer_from_host(array) for array in arrays] for arrays in given]
    reset()
    described = []
    for turn in range(8):
        number = turn % 2
        (result,) = executable.execute_buffers(buffers[number])
        (expected,) = evaluate(module, *given[number])
        np.testing.assert_array_equal(result.to_numpy(), expected)
        described.append(calls("cuTensorMapEncodeTiled"))
    assert described[0] == 4
    assert described[1] - described[0] == 3  # the result of the first product stays where it is


def test_an_array_that_is_refused(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    executable, given = compiled(client, product(64, 64, 64, dtype="bf16")), integers(product(64, 64, 64, dtype="bf16"))
    simulator.fake().fake_fail(b"cuTensorMapEncodeTiled", 1)
    with pytest.raises(ExecutionError, match=r"launching k0_\w+, 1 blocks of 160 threads: cuTensorMapEncodeTiled ret"):
        executable.execute(*given)
    reset()
    assert executable.execute(*given)


# Descriptions


def described(module: Module, **facts: Any) -> dict[int, TensorMap]:
    """Returns the descriptions of arrays in a program's only launch, by the numbers of arguments."""
    target = replace(nvptx.target("sm_90a"), tf32=True, **facts)
    emitted = assembly.emit_program(Stages(module, target, ROUNDED).program, Nvptx(), target)
    (work,) = emitted.work.values()
    (launched,) = work.functions
    return {one.argument: one for one in launched.maps}


def test_a_matrix(tile: int) -> None:
    found = described(product(100, 72, 208, (1, 0), "bf16"))
    assert found[0] == TensorMap(0, 0, "bf16", (208, 100), (416,), (64, tile))
    assert found[1] == TensorMap(1, 0, "bf16", (72, 208), (144,), (64, 64))


def test_dimensions_are_in_the_order_of_memory(tile: int) -> None:
    found = described(heads("[0, 2, 1, 3]", "2x3x40x16"))
    assert found[0] == TensorMap(0, 0, "bf16", (16, 3, 40, 2), (32, 96, 3840), (64, 1, tile, 1))


@pytest.mark.parametrize(
    "module",
    [
        product(100, 100, 100, (1, 1), "bf16"),  # lines of 200 bytes
        product(128, 128, 128, (0, 0), "f32"),  # lines along the rows and columns
    ],
)
def test_what_cannot_be_copied_in_boxes(tile: int, module: Module) -> None:
    assert not described(module)


def test_only_hopper_copies_boxes(tile: int) -> None:
    assert not described(product(128, 128, 64, dtype="bf16"), bulk_copies=False)


# What the simulator, and the driver that is not there, tell


PLACES = {"barrier": 4, "publish": 2, "start_count": 3, "expect": 3, "copy_box": 3, "wait_for_phase": 1}


@pytest.mark.parametrize("word", PLACES)
def test_every_barrier_count_and_wait_is_needed(
    word: str, tile: int, client: GpuClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = product(tile, tile, 320, (1, 0), "f32", epilogue="negate")
    expect_all_needed(word, PLACES[word], client, module, monkeypatch, copied=1)


def expect_all_needed(
    word: str, count: int, client: GpuClient, module: Module, monkeypatch: pytest.MonkeyPatch, copied: int = BOTH
) -> None:
    """Leaves out, one at a time, each of the `count` steps that a word of the dialect emits: the result must be right
    with all of them, and without one, wrong or an error, in some order of the threads."""
    kept, given = getattr(Nvptx, word), integers(module)
    (expected,) = evaluate(module, *given)

    def correct(left_out: int) -> tuple[bool, int]:
        places = itertools.count()

        def emit(self: Nvptx, code: Code, *operands: Any) -> object:
            if next(places) == left_out:
                return operands[0] if operands else None
            return kept(self, code, *operands)

        monkeypatch.setattr(Nvptx, word, emit)
        executable = compiled(client, module, copied)
        return all(right_with(executable, seed) for seed in range(4)), next(places)

    def right_with(executable: LoadedExecutable, seed: int) -> bool:
        reset()
        simulator.fake().fake_seed(seed)
        try:
            return np.array_equal(executable.execute(*given)[0], expected)
        except ExecutionError:
            reset()
            return False

    assert correct(-1) == (True, count)
    assert not any(correct(number)[0] for number in range(count))
    reset()


def test_a_wrong_number_of_bytes(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TENSOR_TILES", ((64, 1),))
    kept, module = Nvptx.expect, product(64, 64, 128, dtype="bf16")
    for more in (-16, 16):
        monkeypatch.setattr(
            Nvptx, "expect", lambda self, code, count, nbytes, more=more: kept(self, code, count, nbytes + more)
        )
        executable = compiled(client, module)
        with pytest.raises(ExecutionError, match="arrive than a phase expects" if more < 0 else "nobody has begun"):
            executable.execute(*integers(module))
        reset()


LIMITS: list[dict[str, Any]] = [
    {"place": 32},
    {"type": 13},
    {"rank": 6},
    {"rank": 0},
    {"address": 8},
    {"extents": (0, 64)},
    {"extents": (64, (1 << 32) + 1)},
    {"strides": (136,)},
    {"strides": (112,)},
    {"strides": (1 << 40,)},
    {"box": (64, 257)},
    {"box": (0, 64)},
    {"box": (60, 64)},
    {"box": (72, 64)},
    {"steps": (9, 1)},
    {"steps": (0, 1)},
    {"fill": 2},
    {"swizzle": 7},
]


@pytest.mark.parametrize("limit", [{}, *LIMITS])
def test_limits_of_the_driver(client: GpuClient, limit: dict[str, Any]) -> None:
    """The fake driver refuses what the driver's documentation forbids."""
    memory, wide = client.driver.allocate(64 * 128), ctypes.c_uint64
    room = (ctypes.c_char * 256)()
    given = {"place": 0, "type": 9, "rank": 2, "address": 0, "extents": (64, 64), "strides": (128,), "box": (64, 64)}
    given |= {"steps": (1, 1), "swizzle": 3, "fill": 0, **limit}
    place = -(-ctypes.addressof(room) // 64) * 64 + given["place"]
    extents, strides = (wide * 6)(*given["extents"]), (wide * 5)(*given["strides"])
    box, steps = (ctypes.c_uint32 * 6)(*given["box"]), (ctypes.c_uint32 * 6)(*given["steps"])
    address = memory.address + given["address"]
    operands = place, given["type"], given["rank"], address, extents, strides, box, steps, 0, given["swizzle"], 3
    with client.driver.current():
        code = simulator.fake().cuTensorMapEncodeTiled(*map(argument, operands), given["fill"])
    assert (code == 0) == (not limit)


def argument(operand: Any) -> Any:
    return ctypes.c_uint64(operand) if isinstance(operand, int) else operand


# ptxas


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "layout", "depth"),
    [
        ("bf16", (1, 0), 512),
        ("f16", (0, 1), 512),
        ("bf16", (1, 1), 8192),
        ("f32", (1, 1), 512),
        ("i8", (1, 1), 512),
    ],
)
def test_registers(
    dtype: str, layout: tuple[int, int], depth: int, tile: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for two blocks, as where threads copy, and descriptions of arrays are not copied."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts = replace(nvptx.target("sm_90a"), tf32=True)
    size = (1024, 1024, depth)
    module = of_integers(*size, layout, "i8", "i32") if dtype == "i8" else product(*size, layout, dtype)
    emitted = assembly.emit_program(Stages(module, facts, CompileOptions()).program, Nvptx(), facts)
    assert "cp.async.bulk.tensor.2d" in emitted.text
    assert "cp.async.cg" not in emitted.text
    said = assembled(emitted.text, tmp_path)
    assert set(re.findall(r"(\d+) bytes spill", said)) == {"0"}
    assert set(re.findall(r"(\d+) bytes stack frame", said)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", said))) <= 128
    (work,) = emitted.work.values()
    assert max(one.memory for one in work.functions) <= 113 << 10
