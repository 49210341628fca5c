"""The layer over LLVM's builder: literals have types and are rounded, scalars and vectors can be combined, and emitted
code computes what Python does."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory, of_numbers
from trivium.backends.cpu.target import host
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Code,
    element,
    is_true,
    literal,
    mangle,
    shaped,
    stack_slot,
)
from trivium.backends.llvm.numbers import Int, i64

FOUR = ll.VectorType(F32, 4)
NUMBERS = [0.0, -0.0, 1.5, -2.75, 0.1, 1e-45, 3.4028235e38, 1e39, -1e39, 1e-50, math.inf, -math.inf, math.pi]


def emptied(fast: bool = False, fma: bool = True) -> Code:
    function = ll.Function(ll.Module("test"), ll.FunctionType(ll.VoidType(), [POINTER]), "test")
    return Code(ll.IRBuilder(function.append_basic_block("entry")), replace(host(), fma=fma), fast)


def stored(type_: ll.Type, number: float, dtype: type, lanes: int) -> np.ndarray:
    """Returns a literal as it is stored in memory."""
    array = np.empty(lanes, dtype)
    of_memory(lambda code, pointer: code.builder.store(literal(type_, number), pointer, align=1))(array.ctypes.data)
    return array


@pytest.mark.parametrize("number", NUMBERS)
def test_literals_of_floats_are_rounded_once(number: float) -> None:
    with np.errstate(over="ignore"):
        single = np.float32(number)
    for type_, lanes in ((F32, 1), (FOUR, 4)):
        assert stored(type_, number, np.float32, lanes).tobytes() == np.full(lanes, single).tobytes()
    assert stored(F64, number, np.float64, 1).tobytes() == struct.pack("<d", number)


def test_literals_of_nan_and_integers() -> None:
    assert np.isnan(stored(FOUR, math.nan, np.float32, 4)).all()
    assert stored(ll.VectorType(I64, 2), -(2**63), np.int64, 2).tolist() == [-(2**63)] * 2
    assert stored(I8, 255, np.uint8, 1).tolist() == [255]


def test_types() -> None:
    assert element(FOUR) == element(F32) == F32
    assert shaped(I32, FOUR) == ll.VectorType(I32, 4)
    assert shaped(I32, F64) == I32
    kinds = [F32, F64, I1, POINTER, ll.VectorType(I32, 8), ll.VectorType(POINTER, 2)]
    assert [mangle(kind) for kind in kinds] == ["f32", "f64", "i1", "p0", "v8i32", "v2p0"]


def test_what_is_known_to_be_true() -> None:
    mask = ll.VectorType(I1, 4)
    assert is_true(literal(I1, True))
    assert is_true(literal(mask, True))
    assert not is_true(literal(mask, False))
    assert not is_true(literal(I32, 1))


def test_numbers_take_the_type_of_the_value_beside_them() -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        x = memory.load_vector(code, pointer, FOUR, None, None)
        y = code.sub(10, code.mul(x, 2))
        y = code.select(code.compare(">", y, 5), y, -1)
        memory.store_vector(code, code.add(y, 0.5), pointer, None)

    array = np.array([0, 1, 2.5, 3], np.float32)
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [10.5, 8.5, -0.5, -0.5]


def test_shuffles_and_splats() -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        x = memory.load_vector(code, pointer, FOUR, None, None)
        lane = code.builder.extract_element(x, I32(2))
        assert code.splat(lane, 1) is lane
        assert code.splat(x, 4) is x
        mixed = code.shuffle(x, (3, 0, 5, 1), code.splat(lane, 4))
        memory.store_vector(code, mixed, pointer, None)

    array = np.arange(4, dtype=np.float32)
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [3, 0, 2, 1]


def test_polynomials_have_their_highest_power_first() -> None:
    def emit(code: Code, pointer: ll.Value) -> None:
        x = code.builder.load(pointer, typ=F64)
        code.builder.store(code.polynomial(x, (2, -3, 0, 7)), pointer)

    array = np.array([1.5])
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [2 * 1.5**3 - 3 * 1.5**2 + 7]


@pytest.mark.parametrize(("scalar", "dtype"), [(F32, np.float32), (F64, np.float64)], ids=["f32", "f64"])
def test_magnitudes_take_the_sign_of_another_number(scalar: ll.Type, dtype: type) -> None:
    vector = ll.VectorType(scalar, 4)

    def emit(code: Code, pointer: ll.Value) -> None:
        sign = memory.load_vector(code, pointer, vector)
        memory.store_vector(code, code.with_sign(literal(vector, 1.5), sign), pointer)

    array = np.array([-0.0, 0, -np.inf, 7], dtype)
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [-1.5, 1.5, -1.5, 1.5]


def test_fused_products_are_rounded_once() -> None:
    """On every target. Other products are fused with a sum only where an instruction does it."""
    x = 1 + 2.0**-30

    def emit(code: Code, pointer: ll.Value) -> None:
        value = code.builder.load(pointer, typ=F64)
        code.builder.store(code.fused(value, value, -(1 + 2.0**-29)), pointer)

    array = np.array([x])
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [2.0**-60]
    apart, together = emptied(fma=False), emptied(fma=True)
    for code in (apart, together):
        value = literal(F64, 1)
        code.fma(value, value, value)
    assert "llvm.fma" not in str(apart.builder.module)
    assert "llvm.fma" in str(together.builder.module)


@pytest.mark.parametrize("relation", ["<", "<=", "==", "!=", ">=", ">"])
def test_comparisons_are_those_of_numpy(relation: str) -> None:
    compare = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">=": np.greater_equal}
    values = [1.0, 2.0, math.nan, math.inf, -0.0, 0.0]
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))

    def emit(code: Code, pointer: ll.Value) -> None:
        kind = ll.VectorType(F64, 36)
        a = code.builder.load(pointer, typ=kind, align=8)
        b = code.builder.load(code.builder.gep(pointer, [I64(36)], source_etype=F64), typ=kind, align=8)
        code.builder.store(code.select(code.compare(relation, a, b), code.like(a, 1), 0), pointer, align=8)

    array = np.concatenate([x, y])
    of_memory(emit)(array.ctypes.data)
    np.testing.assert_array_equal(array[:36] == 1, compare.get(relation, np.greater)(x, y))


def test_fast_code_never_assumes_that_numbers_are_finite() -> None:
    code = emptied(fast=True)
    x = code.builder.load(code.builder.function.args[0], typ=F32)
    code.add(x, 1)
    fast = str(code.builder.block.instructions[-1])
    assert "reassoc" in fast
    assert "nnan" not in fast
    assert "ninf" not in fast
    assert "fast" not in fast
    strict = code.strict()
    strict.add(x, 1)
    assert "reassoc" not in str(code.builder.block.instructions[-1])
    assert strict.strict() is strict


def test_functions_are_declared_once() -> None:
    code = emptied()
    for _ in range(3):
        code.call("cosine", F64, literal(F64, 0))
    assert str(code.builder.module).count("declare") == 1


def test_the_stack_does_not_grow_in_loops() -> None:
    """A stack slot that is requested in a loop is allocated once, at the entry of the function."""

    def emit(code: Code, count: Int) -> Int:
        before, body = code.builder.block, code.builder.append_basic_block("loop")
        after = code.builder.append_basic_block("after")
        code.builder.branch(body)
        code.builder.position_at_end(body)
        number = code.phi([(I64(0), before)])
        slot = stack_slot(code.builder, ll.ArrayType(I8, 1 << 16), align=64)
        assert slot.parent is before
        code.builder.store(number, slot)
        following = code.iadd(code.builder.load(slot, typ=I64), 1)
        number.add_incoming(following, body)
        code.builder.cbranch(code.icompare("<", following, i64(count)), body, after)
        code.builder.position_at_end(after)
        address = code.builder.ptrtoint(slot, I64)
        return Int(code, code.iadd(code.builder.mul(following, I64(64)), code.both(address, 63)))

    # A thousand slots of 64 KB would exceed the stack; the address is a multiple of 64.
    assert of_numbers(1, emit)(1000) == 64_000
