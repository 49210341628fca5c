"""Loads and stores at computed addresses, for one element or for a vector of lanes: neighbouring elements move as one
vector, the same element for all lanes is loaded once, everything else is gathered or scattered. Under a mask only its
lanes touch memory."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import I1, I32, I64, POINTER, Code, Literal, element, mangle
from trivium.backends.llvm.narrow import from_memory, memory_type, to_memory


@dataclass(frozen=True)
class Place:
    """Element offsets from `pointer`: `base` for lane 0, `step` more for each lane, plus a vector of `scattered`
    offsets where they are irregular."""

    pointer: ll.Value
    dtype: str
    base: ll.Value
    step: int
    scattered: ll.Value | None = None


def load(code: Code, place: Place, lanes: int, mask: ll.Value | None) -> ll.Value:
    """The held value at `place`: a scalar where all lanes read the same element."""
    type_ = memory_type(place.dtype)
    if place.scattered is None and place.step == 0:
        base = place.base if mask is None else code.select(_any(code, mask), place.base, 0)
        raw = _aligned(code.builder.load(_pointer(code, place, base), typ=type_), type_)
    elif place.scattered is None and place.step in (1, -1):
        raw = _load_run(code, place, lanes, mask, type_)
    elif place.scattered is None and place.step == 2 and mask is None:
        raw = _load_every_second(code, place, lanes, type_)
    else:
        pointers = _pointers(code, place, lanes)
        vector = ll.VectorType(type_, lanes)
        raw = code.call(
            f"llvm.masked.gather.{mangle(vector)}.v{lanes}p0", vector, pointers, I32(_bytes(type_)),
            _mask(mask, lanes), Literal(vector, "zeroinitializer"),
        )  # fmt: skip
    return from_memory(code, raw, place.dtype)


def store(code: Code, place: Place, value: ll.Value, lanes: int, mask: ll.Value | None) -> None:
    """Writes a held value to `place`."""
    type_ = memory_type(place.dtype)
    raw = to_memory(code, value, place.dtype)
    if lanes == 1:
        _aligned(code.builder.store(raw, _pointer(code, place, place.base)), type_)
        return
    raw = code.splat(raw, lanes)
    if place.scattered is None and place.step == 1:
        pointer = _pointer(code, place, place.base)
        if mask is None:
            _aligned(code.builder.store(raw, pointer), type_)
        else:
            name = f"llvm.masked.store.{mangle(raw.type)}.p0"
            code.call(name, ll.VoidType(), raw, pointer, I32(_bytes(type_)), mask)
        return
    pointers = _pointers(code, place, lanes)
    name = f"llvm.masked.scatter.{mangle(raw.type)}.v{lanes}p0"
    code.call(name, ll.VoidType(), raw, pointers, I32(_bytes(type_)), _mask(mask, lanes))


@functools.cache
def lane_numbers(lanes: int, step: int = 1) -> ll.Value:
    """The vector 0, step, 2 * step, ... of i64"""
    return Literal(ll.VectorType(I64, lanes), f"<{', '.join(f'i64 {lane * step}' for lane in range(lanes))}>")


@functools.cache
def leading_mask(lanes: int, count: int) -> ll.Value:
    """The first `count` lanes."""
    return Literal(ll.VectorType(I1, lanes), f"<{', '.join(f'i1 {int(lane < count)}' for lane in range(lanes))}>")


def reverse(code: Code, vector: ll.Value) -> ll.Value:
    """The lanes in opposite order."""
    return code.shuffle(vector, tuple(range(vector.type.count))[::-1])


def _load_run(code: Code, place: Place, lanes: int, mask: ll.Value | None, type_: ll.Type) -> ll.Value:
    vector = ll.VectorType(type_, lanes)
    base = place.base if place.step == 1 else code.isub(place.base, lanes - 1)
    pointer = _pointer(code, place, base)
    if mask is None:
        raw = _aligned(code.builder.load(pointer, typ=vector), type_)
    else:
        mask = mask if place.step == 1 else reverse(code, mask)
        raw = code.call(
            f"llvm.masked.load.{mangle(vector)}.p0", vector, pointer, I32(_bytes(type_)), mask,
            Literal(vector, "zeroinitializer"),
        )  # fmt: skip
    return raw if place.step == 1 else reverse(code, raw)


def _load_every_second(code: Code, place: Place, lanes: int, type_: ll.Type) -> ll.Value:
    """Two vectors that together reach from the first element to the last and no further, and the lanes that are
    wanted of them."""
    vector = ll.VectorType(type_, lanes)
    bases = place.base, code.iadd(place.base, lanes - 1)
    low, high = (_aligned(code.builder.load(_pointer(code, place, b), typ=vector), type_) for b in bases)
    return code.shuffle(low, tuple(2 * lane if 2 * lane < lanes else 2 * lane + 1 for lane in range(lanes)), high)


def _pointers(code: Code, place: Place, lanes: int) -> ll.Value:
    """The address of each lane's element."""
    pointers = code.builder.gep(place.pointer, [_offsets(code, place, lanes)], source_etype=memory_type(place.dtype))
    # llvmlite takes the type of the pointer that the offsets are added to.
    pointers.type = ll.VectorType(POINTER, lanes)
    return pointers


def _offsets(code: Code, place: Place, lanes: int) -> ll.Value:
    offsets = code.splat(place.base, lanes)
    if place.step:
        offsets = code.iadd(offsets, lane_numbers(lanes, place.step))
    return offsets if place.scattered is None else code.iadd(offsets, place.scattered)


def _pointer(code: Code, place: Place, base: ll.Value) -> ll.Value:
    return code.builder.gep(place.pointer, [base], source_etype=memory_type(place.dtype))


def _aligned(access: ll.Instruction, type_: ll.Type) -> ll.Instruction:
    """Arrays may start at any element: a vector access is only as aligned as one of its elements, and constants not
    even that."""
    access.align = 1 if _bytes(type_) == 1 else _bytes(type_)
    return access


def _bytes(type_: ll.Type) -> int:
    if isinstance(type_, ll.DoubleType):
        return 8
    return 4 if isinstance(type_, ll.FloatType) else element(type_).width // 8


def _mask(mask: ll.Value | None, lanes: int) -> ll.Value:
    return mask if mask is not None else Literal(ll.VectorType(I1, lanes), "splat (i1 true)")


def _any(code: Code, mask: ll.Value) -> ll.Value:
    return code.call(f"llvm.vector.reduce.or.{mangle(mask.type)}", I1, mask)
