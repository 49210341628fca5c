"""Narrow floats: every code is read as ml_dtypes reads it, and numbers of every kind are rounded as ml_dtypes rounds
them."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ll
import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.backends.harness import elementwise, program_of, run
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget, host
from trivium.backends.llvm.narrow import computed_type, held_type, is_narrow, memory_type
from trivium.compiler.kernel import numpy_dtype
from trivium.compiler.kernel.dtypes import DTYPES, FLOATS, bit_width, storage_bytes

COUNT = 37


def apply(op: str, *operands: np.ndarray, dtype: str) -> np.ndarray:
    return run(elementwise(op, [dtype] * len(operands), dtype, len(operands[0])), *operands)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide"])
def test_narrow_floats_are_rounded_after_each_operation(op: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(COUNT).astype(numpy_dtype(dtype)) for _ in range(2))
    exact = getattr(np, op)(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(apply(op, a, b, dtype=dtype), exact.astype(a.dtype))


SMALL = [
    "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f4E2M1FN", "f6E2M3FN",
    "f6E3M2FN", "f16", "bf16",
]  # fmt: skip


@pytest.mark.parametrize("dtype", SMALL)
def test_small_floats_from_and_to_f32(dtype: str) -> None:
    type_ = numpy_dtype(dtype)
    count = min(1 << 16, 1 << (16 if type_.itemsize == 2 else int("".join(filter(str.isdigit, dtype.split("E")[0])))))
    codes = np.arange(count).astype(np.uint16 if type_.itemsize == 2 else np.uint8).view(type_)
    wide = _converted(codes, dtype, "f32")
    np.testing.assert_array_equal(wide, codes.astype(np.float32))
    random = np.random.default_rng(1)
    values = (random.standard_normal(4000) * np.exp(random.uniform(-14, 8, 4000))).astype(np.float32)
    finite = wide[np.isfinite(wide)]
    between = np.unique(finite)
    ties = ((between[1:].astype(np.float64) + between[:-1]) / 2).astype(np.float32)
    for x in (values, finite, ties):
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(
                _converted(x, "f32", dtype).astype(np.float32), x.astype(type_).astype(np.float32)
            )


def _converted(x: np.ndarray, source: str, target: str, machine: CpuTarget | None = None) -> np.ndarray:
    program = program_of(elementwise("convert", [source], target, len(x), dtype=target))
    (result,) = CpuExecutable(assemble_program(program, machine or host())).execute(x)
    return result


def every_rounding() -> np.ndarray:
    """Numbers of f32 with all combinations of the first 19 bits (sign, exponent, and the digits of f16), at and next to
    the midpoints between two results."""
    first = np.arange(1 << 19, dtype=np.uint32) << 13
    last = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    return (first[:, None] | last).ravel().view(np.float32)


def expect_rounded(x: np.ndarray, dtype: str, machine: CpuTarget) -> None:
    """As ml_dtypes rounds. The code of a NaN is unspecified; types without NaN have a zero of either sign instead."""
    type_ = numpy_dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(type_)
    got = _converted(x, "f32", dtype, machine)
    wide, wanted_wide = got.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(wide, wanted_wide)
    bits = np.uint16 if type_.itemsize == 2 else np.uint8
    number = ~np.isnan(wanted_wide) & ~np.isnan(x)
    np.testing.assert_array_equal(got.view(bits)[number], wanted.view(bits)[number])


@pytest.mark.parametrize("dtype", [*SMALL, "f8E8M0FNU"])
def test_nan_keeps_its_sign(dtype: str) -> None:
    """Which a sort in total order sees. Types without NaN have a zero in its place."""
    bits = np.array([0x7FC00000, 0xFFC00000, 0x3F800000, 0xBF800000] * 9, np.uint32)
    found = _converted(bits.view(np.float32), "f32", dtype)
    with np.errstate(invalid="ignore"):
        expected = bits.view(np.float32).astype(numpy_dtype(dtype))
    raw = np.dtype(f"u{expected.itemsize}")
    np.testing.assert_array_equal(found.view(raw), expected.view(raw))


@pytest.mark.parametrize("dtype", SMALL)
def test_every_rounding(dtype: str) -> None:
    """By arithmetic, on every processor."""
    expect_rounded(every_rounding(), dtype, replace(host(), half=False))


def test_every_rounding_to_powers_of_two() -> None:
    """Also at the midpoint between two numbers, and below the smallest one."""
    half_way = (np.arange(1, 255, dtype=np.uint32) << 23 | 0x400000).view(np.float32)
    subnormal = np.linspace(0, 1 << 23, 1000, dtype=np.uint32).view(np.float32)
    expect_rounded(np.concatenate([every_rounding(), half_way, subnormal]), "f8E8M0FNU", host())


@pytest.mark.skipif(not host().half, reason="this processor has no instructions for f16")
def test_every_rounding_by_instructions() -> None:
    expect_rounded(every_rounding(), "f16", host())


def test_every_code_of_powers_of_two() -> None:
    codes = np.arange(256).astype(np.uint8).view(numpy_dtype("f8E8M0FNU"))
    np.testing.assert_array_equal(_converted(codes, "f8E8M0FNU", "f32"), codes.astype(np.float32))


@pytest.mark.parametrize("half", [True, False])
def test_every_code_of_f16(half: bool) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    got = _converted(codes, "f16", "f32", replace(host(), half=half and host().half))
    np.testing.assert_array_equal(got, codes.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(got[codes == 0]), np.signbit(codes[codes == 0]))


@pytest.mark.parametrize("dtype", ["i2", "ui2", "i4", "ui4"])
def test_small_integers_take_a_byte_each(dtype: str) -> None:
    """They are read with their sign; the other bits of the byte are ignored when it is read, and written as zeros."""
    memory = np.arange(256).astype(np.uint8)
    values = memory.view(numpy_dtype(dtype))
    wide = _converted(values, dtype, "i32").tolist()
    bits = bit_width(dtype)
    low = [number % (1 << bits) for number in range(256)]
    assert wide == [n - (1 << bits) if dtype.startswith("i") and n >> (bits - 1) else n for n in low]
    again = _converted(np.array(wide, np.int32), "i32", dtype)
    assert again.astype(np.int32).tolist() == wide
    assert again.view(np.uint8).tolist() == low


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_types_in_memory_and_in_registers(dtype: str) -> None:
    memory, held = memory_type(dtype), held_type(dtype)
    if isinstance(memory, ll.IntType):
        assert memory.width == 8 * storage_bytes(dtype)
    assert is_narrow(dtype) == (computed_type(dtype) != held)
    if isinstance(held, ll.IntType):
        assert held.width == (1 if dtype == "i1" else max(8, bit_width(dtype))) <= memory.width


MOVED = """
func.func @main(%bits: tensor<16x{n}xui{w}>, %places: tensor<16xi32>, %p: tensor<16x{n}xi1>) -> ({results}) {{
  %x = stablehlo.bitcast_convert %bits : (tensor<16x{n}xui{w}>) -> tensor<16x{n}x{t}>
  %back = stablehlo.bitcast_convert %x : (tensor<16x{n}x{t}>) -> tensor<16x{n}xui{w}>
  %transposed = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x{n}x{t}>) -> tensor<{n}x16x{t}>
  %reversed = stablehlo.reverse %x, dims = [0, 1] : tensor<16x{n}x{t}>
  %selected = stablehlo.select %p, %x, %reversed : tensor<16x{n}xi1>, tensor<16x{n}x{t}>
  %tail = stablehlo.slice %x [0:16, 3:{n}] : (tensor<16x{n}x{t}>) -> tensor<16x{m}x{t}>
  %head = stablehlo.slice %x [0:16, 0:3] : (tensor<16x{n}x{t}>) -> tensor<16x3x{t}>
  %joined = stablehlo.concatenate %tail, %head, dim = 1 : (tensor<16x{m}x{t}>, tensor<16x3x{t}>) -> tensor<16x{n}x{t}>
  %gathered = "stablehlo.gather"(%x, %places) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, {n}>}}>
    : (tensor<16x{n}x{t}>, tensor<16xi32>) -> tensor<16x{n}x{t}>
  %nan = stablehlo.constant dense<0x{nan:X}> : tensor<16x{n}x{t}>
  %filled = stablehlo.select %p, %x, %nan : tensor<16x{n}xi1>, tensor<16x{n}x{t}>
  return %x, %back, %transposed, %selected, %joined, %gathered, %filled : {results}
}}
"""


@pytest.mark.parametrize("dtype", sorted(name for name in FLOATS if is_narrow(name) and bit_width(name) >= 8))
def test_every_bit_of_what_is_only_moved_is_kept(dtype: str) -> None:
    """All codes, NaNs of every kind among them, interpreted and compiled."""
    width = bit_width(dtype)
    kind, count = np.dtype(f"u{width // 8}"), (1 << width) // 16
    bits = np.random.default_rng(0).permutation(1 << width).astype(kind).reshape(16, count)
    places, chosen = np.arange(16, dtype=np.int32)[::-1].copy(), bits % 3 == 0
    nan = (1 << width) - 1
    array = f"tensor<16x{count}x{dtype}>"
    results = ", ".join((array, f"tensor<16x{count}xui{width}>", f"tensor<{count}x16x{dtype}>", *[array] * 4))
    module = trivium.parse(MOVED.format(n=count, m=count - 3, w=width, t=dtype, nan=nan, results=results))
    wanted = (
        bits, bits, bits.T, np.where(chosen, bits, bits[::-1, ::-1]), np.roll(bits, -3, axis=1), bits[::-1],
        np.where(chosen, bits, kind.type(nan)),
    )  # fmt: skip
    for found in (trivium.evaluate(module, bits, places, chosen), trivium.compile(module)(bits, places, chosen)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.ascontiguousarray(one).view(kind), other)


@pytest.mark.parametrize("dtype", SMALL)
def test_negate_and_abs_change_the_sign_of_every_code(dtype: str) -> None:
    """Of NaNs too, if they have one."""
    bits = np.uint16 if numpy_dtype(dtype).itemsize == 2 else np.uint8
    codes = np.arange(1 << bit_width(dtype)).astype(bits).view(numpy_dtype(dtype))
    for op, function in (("negate", np.negative), ("abs", np.abs)):
        np.testing.assert_array_equal(apply(op, codes, dtype=dtype).view(bits), function(codes).view(bits))


@pytest.mark.parametrize("dtype", [*SMALL, "f8E8M0FNU"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extremes_of_narrow_floats(dtype: str, op: str) -> None:
    """Also of types without infinities or negative numbers: each lane begins with a number that the type has."""
    type_ = numpy_dtype(dtype)
    module = trivium.parse(
        f"""func.func @main(%x: tensor<2x37x{dtype}>, %init: tensor<{dtype}>) -> tensor<2x{dtype}> {{
          %0 = stablehlo.reduce(%x init: %init) applies stablehlo.{op} across dimensions = [1]
            : (tensor<2x37x{dtype}>, tensor<{dtype}>) -> tensor<2x{dtype}>
          return %0 : tensor<2x{dtype}>
        }}"""
    )
    info = ml_dtypes.finfo(type_)
    ends = np.array([info.min, info.max]).astype(type_)
    x = np.repeat(ends[:, None], 37, axis=1)
    for init in ends:
        (wanted,), (found,) = trivium.evaluate(module, x, init), trivium.compile(module)(x, init)
        np.testing.assert_array_equal(found, wanted)
