"""Loads and stores at computed addresses, for one element or for a vector of lanes: neighbouring elements move as one
vector, elements in a few vectors of memory are moved into their lanes, an element that all lanes share is loaded once,
everything else is gathered or scattered. With a mask, only the lanes in it touch memory."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, I1, I32, I64, POINTER, Code, Literal, element, mangle
from trivium.backends.llvm.narrow import from_memory, memory_type, to_memory

BYTES = ll.VectorType(ll.IntType(8), 64)
"""The bytes of a vector register of AVX-512."""


@dataclass(frozen=True)
class Address:
    """Places of elements, counted from `pointer` on: `base` for lane 0, `offsets` more for each lane, plus a vector
    `scattered` if they are irregular. `alignment`: of lane 0, in bytes, if more is known than that of an element."""

    pointer: ll.Value
    dtype: str
    base: ll.Value
    offsets: tuple[int, ...] = (0,)
    scattered: ll.Value | None = None
    alignment: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether all lanes have the same element."""
        return self.scattered is None and not any(self.offsets)

    @property
    def is_run(self) -> bool:
        """Whether each lane has the element after that of the lane before it."""
        return self.scattered is None and self.offsets == tuple(range(len(self.offsets)))


def load(code: Code, address: Address, lanes: int, mask: ll.Value | None) -> ll.Value:
    """Returns the held value at `address`: a scalar if all lanes read the same element."""
    type_ = memory_type(address.dtype)
    if address.is_shared:
        reads = mask is None or (isinstance(mask, Literal) and "i1 1" in mask.constant)
        base = address.base if reads else code.select(code.in_any_lane(mask), address.base, 0)
        raw = _aligned(code.builder.load(_pointer(code, address, base), typ=type_), type_)
    elif address.is_run:
        pointer = _pointer(code, address, address.base)
        raw = load_vector(code, pointer, ll.VectorType(type_, lanes), mask, alignment=address.alignment)
    elif (
        address.scattered is None and not code.target.lanes_apart and vectors_near(address.offsets) <= code.target.near
    ):
        raw = _load_near(code, address, lanes, mask, type_)
    else:
        raw = gather(code, _pointers(code, address, lanes), ll.VectorType(type_, lanes), mask)
    return from_memory(code, raw, address.dtype)


def store(code: Code, address: Address, value: ll.Value, lanes: int, mask: ll.Value | None) -> None:
    """Writes a held value to `address`."""
    type_ = memory_type(address.dtype)
    raw = to_memory(code, value, address.dtype)
    if lanes == 1:
        _aligned(code.builder.store(raw, _pointer(code, address, address.base)), type_)
        return
    raw = code.splat(raw, lanes)
    if address.is_run:
        store_vector(code, raw, _pointer(code, address, address.base), mask, address.alignment)
    else:
        scatter(code, raw, _pointers(code, address, lanes), mask)


def store_interleaved(code: Code, address: Address, values: Sequence[ll.Value], lanes: int) -> None:
    """Writes a few held values, the elements of each of which are as far apart as there are values, and the first ones
    neighbours: whole vectors from `address` on."""
    raw = [code.splat(to_memory(code, value, address.dtype), lanes) for value in values]
    width = min(lanes, code.target.vector_bytes // _bytes(raw[0].type))
    for begin in range(0, lanes, width):
        own = tuple(range(begin, begin + width))
        vectors = interleaved(code, [code.shuffle(each, own) for each in raw] if width < lanes else raw, width)
        for at, vector in zip(itertools.count(begin * len(raw), width), vectors, strict=False):
            store_vector(code, vector, _pointer(code, address, code.iadd(address.base, at)))


def load_interleaved(code: Code, address: Address, count: int, lanes: int) -> list[ll.Value]:
    """Returns `count` held values, which together are the whole vectors from `address` on, as `store_interleaved`
    writes them."""
    type_ = memory_type(address.dtype)
    width = min(lanes, code.target.vector_bytes // _bytes(type_))
    vector = ll.VectorType(type_, width)
    places = [_pointer(code, address, code.iadd(address.base, at)) for at in range(0, count * lanes, width)]
    raw = [load_vector(code, place, vector) for place in places]
    parts = [taken_apart(code, raw[first : first + count], width) for first in range(0, len(raw), count)]
    return [from_memory(code, code.joined(pieces), address.dtype) for pieces in zip(*parts, strict=True)]


def interleaved(code: Code, vectors: list[ll.Value], lanes: int) -> list[ll.Value]:
    """Returns vectors with the first elements of all vectors, then the second ones, and so on."""
    count = len(vectors)
    if count == 1:
        return vectors
    if count % 2:
        order = [at % count * lanes + at // count for at in range(count * lanes)]
        return [_picked(code, vectors, order[begin : begin + lanes]) for begin in range(0, count * lanes, lanes)]
    even, odd = interleaved(code, vectors[::2], lanes), interleaved(code, vectors[1::2], lanes)
    order = tuple(lane // 2 + lane % 2 * lanes for lane in range(2 * lanes))
    halves = order[:lanes], order[lanes:]
    return [code.shuffle(one, half, other) for one, other in zip(even, odd, strict=True) for half in halves]


def taken_apart(code: Code, vectors: list[ll.Value], lanes: int) -> list[ll.Value]:
    """Returns the vectors that `interleaved` joins to these."""
    count = len(vectors)
    if count == 1:
        return vectors
    if count % 2:
        return [_picked(code, vectors, range(first, count * lanes, count)) for first in range(count)]
    every = tuple(range(0, 2 * lanes, 2)), tuple(range(1, 2 * lanes, 2))
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = [taken_apart(code, [code.shuffle(low, order, high) for low, high in pairs], lanes) for order in every]
    return [value for pair in zip(*halves, strict=True) for value in pair]


# Vectors in their memory form, at any pointer


def load_vector(
    code: Code,
    pointer: ll.Value,
    vector: ll.Type,
    mask: ll.Value | None = None,
    otherwise: ll.Value | None = None,
    alignment: int = 0,
) -> ll.Value:
    """Returns neighbours from `pointer` on; where `mask` is off, the lanes of `otherwise` (or zero), without touching
    memory."""
    if mask is None or (isinstance(mask, Mask) and all(mask.on)):
        return _aligned(code.builder.load(pointer, typ=vector), vector, alignment)
    if code.target.masks_apart or _bytes(vector) >= 4 or isinstance(mask, Literal):
        return _load_masked(code, pointer, vector, mask, otherwise)
    (loaded,) = code.cond(
        code.in_all_lanes(mask),
        lambda: [_aligned(code.builder.load(pointer, typ=vector), vector, alignment)],
        lambda: [_load_masked(code, pointer, vector, mask, otherwise)],
        likely=True,
    )
    return loaded


def _load_masked(
    code: Code, pointer: ll.Value, vector: ll.Type, mask: ll.Value, otherwise: ll.Value | None
) -> ll.Value:
    zero = Literal(vector, "zeroinitializer")
    operands = pointer, I32(_bytes(vector)), mask, zero if otherwise is None else otherwise
    return code.call(f"llvm.masked.load.{mangle(vector)}.p0", vector, *operands)


def store_vector(
    code: Code, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None, alignment: int = 0
) -> None:
    """Writes neighbours from `pointer` on, those for which `mask` is on."""
    if mask is None:
        _aligned(code.builder.store(value, pointer), value.type, alignment)
        return
    value = _truncated(code, value) if code.target.joins_truncation else value
    if code.target.masks_apart:
        _store_masked(code, value, pointer, mask)
    elif isinstance(mask, Leading):
        _store_leading(code, value, pointer, mask.count)
    else:
        with code.builder.if_else(code.in_all_lanes(mask), likely=True) as (whole, partly):
            with whole:
                _aligned(code.builder.store(value, pointer), value.type, alignment)
            with partly:
                _store_masked(code, value, pointer, mask)


def _store_leading(code: Code, value: ll.Value, pointer: ll.Value, count: int) -> None:
    """Writes the first `count` lanes in parts, whose sizes are powers of two."""
    first, type_ = 0, element(value.type)
    while first < count:
        size = 1 << (count - first).bit_length() - 1
        place = code.builder.gep(pointer, [I64(first)], source_etype=type_)
        _aligned(code.builder.store(code.shuffle(value, tuple(range(first, first + size))), place), value.type)
        first += size


def _store_masked(code: Code, value: ll.Value, pointer: ll.Value, mask: ll.Value) -> None:
    operands = value, pointer, I32(_bytes(value.type)), mask
    code.call(f"llvm.masked.store.{mangle(value.type)}.p0", ll.VoidType(), *operands)


def _truncated(code: Code, value: ll.Value) -> ll.Value:
    """Returns a vector that LLVM does not know to be a truncation, if it is one."""
    scalar, lanes = element(value.type), value.type.count
    if not isinstance(scalar, ll.IntType) or lanes * scalar.width < 32:
        return value
    return opaque(code, value)


def opaque(code: Code, value: ll.Value) -> ll.Value:
    """Returns a vector of integers, a whole number of words, of which LLVM does not know how it was computed."""
    words = value.type.count * element(value.type).width // 32
    as_words = code.builder.bitcast(value, ll.VectorType(F32, words) if words > 1 else F32)
    return code.builder.bitcast(code.intrinsic("llvm.arithmetic.fence", as_words), value.type)


def prefetch(code: Code, pointer: ll.Value, *, writes: bool = False, nearest: int = 1) -> None:
    """Requests a cache line that will soon be read or, with `writes`, written, into the caches from the `nearest`-th
    level on."""
    locality, data = 4 - nearest, 1
    operands = pointer, I32(int(writes)), I32(locality), I32(data)
    code.call("llvm.prefetch.p0", ll.VoidType(), *operands)


def gather(code: Code, pointers: ll.Value, vector: ll.Type, mask: ll.Value | None = None) -> ll.Value:
    """Returns one element from each pointer; zero where `mask` is off."""
    lanes = vector.count
    operands = pointers, I32(_bytes(vector)), _mask(mask, lanes), Literal(vector, "zeroinitializer")
    return code.call(f"llvm.masked.gather.{mangle(vector)}.v{lanes}p0", vector, *operands)


def scatter(code: Code, value: ll.Value, pointers: ll.Value, mask: ll.Value | None = None) -> None:
    """Writes one element to each pointer for which `mask` is on."""
    lanes = value.type.count
    operands = value, pointers, I32(_bytes(value.type)), _mask(mask, lanes)
    code.call(f"llvm.masked.scatter.{mangle(value.type)}.v{lanes}p0", ll.VoidType(), *operands)


def lane_pointers(code: Code, base: ll.Value, offsets: ll.Value, type_: ll.Type) -> ll.Value:
    """Returns `base` + each lane's offset, in elements of `type_`."""
    pointers = code.builder.gep(base, [offsets], source_etype=type_)
    # llvmlite uses the type of the pointer that the offsets are added to.
    pointers.type = ll.VectorType(POINTER, offsets.type.count)
    return pointers


@functools.cache
def lane_numbers(lanes: int) -> ll.Value:
    """Returns the vector 0, 1, 2, ... of i64."""
    return lane_literal(tuple(range(lanes)))


@functools.cache
def lane_literal(numbers: tuple[int, ...]) -> ll.Value:
    """Returns a vector of i64."""
    return Literal(ll.VectorType(I64, len(numbers)), f"<{', '.join(f'i64 {number}' for number in numbers)}>")


class Mask(Literal):
    """A constant mask: which lanes are on."""

    def __init__(self, on: Sequence[bool]) -> None:
        super().__init__(ll.VectorType(I1, len(on)), f"<{', '.join(f'i1 {int(each)}' for each in on)}>")
        self.on = on


class Leading(Mask):
    """The mask of the first `count` lanes."""

    def __init__(self, lanes: int, count: int) -> None:
        super().__init__([lane < count for lane in range(lanes)])
        self.count = count


@functools.cache
def leading_mask(lanes: int, count: int) -> Leading:
    """Returns the mask of the first `count` lanes."""
    return Leading(lanes, count)


def reverse(code: Code, vector: ll.Value) -> ll.Value:
    """Returns the lanes in reverse order."""
    return code.shuffle(vector, tuple(range(vector.type.count))[::-1])


def vectors_near(offsets: Sequence[int]) -> int:
    """Returns the number of vectors, with as many lanes as there are `offsets`, that have all elements at these."""
    return -(-(max(offsets) - min(offsets) + 1) // len(offsets))


def _load_near(code: Code, address: Address, lanes: int, mask: ll.Value | None, type_: ll.Type) -> ll.Value:
    """Returns the elements at offsets that are near one another."""
    first = min(address.offsets)
    places = [offset - first for offset in address.offsets]
    width = min(lanes, 1 << ((max(places) + 1).bit_length() - 1))
    pointers = [_pointer(code, address, code.iadd(address.base, first + begin)) for begin in _begins(places, width)]
    moved = _moved(code, pointers, ll.VectorType(type_, width), places, mask)
    # With AVX-512, LLVM 22 never ends if these bytes are shifted and each is in several lanes: it changes the shift to
    # one of words, and that one to one of bytes.
    return opaque(code, moved) if moved.type == BYTES else moved


def load_every_second(code: Code, pointers: Sequence[ll.Value], vector: ll.VectorType) -> ll.Value:
    """Returns every second element from the first of two pointers on; the second one is lanes - 1 elements after it."""
    return _moved(code, pointers, vector, range(0, 2 * vector.count, 2))


def _begins(places: Sequence[int], width: int) -> list[int]:
    """Returns where vectors of `width` lanes begin that together reach exactly from the first of elements at `places`
    to the last."""
    span = max(places) + 1
    return [min(begin, span - width) for begin in range(0, span, width)]


def _moved(
    code: Code,
    pointers: Sequence[ll.Value],
    vector: ll.VectorType,
    places: Sequence[int],
    mask: ll.Value | None = None,
) -> ll.Value:
    """Returns the elements at `places`, counted from the first pointer on, of the vectors that begin at the pointers
    and reach from the first of the elements to the last."""
    width, begins = vector.count, _begins(places, vector.count)
    sources = [min(place // width, len(begins) - 1) for place in places]
    used = sorted(set(sources))
    order = [used.index(n) * width + place - begins[n] for n, place in zip(sources, places, strict=True)]
    vectors = [
        load_vector(code, pointers[n], vector, _lanes_needed(code, mask, order, begin, width))
        for begin, n in zip(range(0, len(used) * width, width), used, strict=True)
    ]
    return _picked(code, vectors, order)


def _picked(code: Code, vectors: Sequence[ll.Value], order: Sequence[int]) -> ll.Value:
    """Returns the lanes of one or more vectors, numbered one vector after the other, in a new order."""
    if len(vectors) <= 2:
        return code.shuffle(vectors[0], tuple(order), *vectors[1:])
    own = 2 * vectors[0].type.count
    near = _picked(code, vectors[:2], [lane if lane < own else 0 for lane in order])
    far = _picked(code, vectors[2:], [lane - own if lane >= own else 0 for lane in order])
    return code.shuffle(near, tuple(n if lane < own else len(order) + n for n, lane in enumerate(order)), far)


def _lanes_needed(code: Code, mask: ll.Value | None, order: Sequence[int], begin: int, width: int) -> ll.Value | None:
    """Returns which of the lanes from `begin` on are moved, by `order`, to a lane in which `mask` is on."""
    if mask is None:
        return None
    users = [[lane for lane, place in enumerate(order) if place == begin + own] for own in range(width)]
    if isinstance(mask, Mask):
        # LLVM 22 aborts on some constants of this kind that it has to compute.
        return Mask([any(mask.on[lane] for lane in own) for own in users])
    off, lanes = Literal(mask.type, "zeroinitializer"), len(order)
    picks = (tuple(u[turn] if turn < len(u) else lanes for u in users) for turn in range(max(map(len, users))))
    return functools.reduce(code.builder.or_, (code.shuffle(mask, pick, off) for pick in picks))


def _pointers(code: Code, address: Address, lanes: int) -> ll.Value:
    """Returns the address of each lane's element. What is common to all of them is added first: where the rest is i32
    that were extended, LLVM then gathers as many elements at once as a register has i32."""
    start = _pointer(code, address, address.base)
    return lane_pointers(code, start, _offsets(code, address, lanes), memory_type(address.dtype))


def _offsets(code: Code, address: Address, lanes: int) -> ll.Value:
    if address.scattered is None:
        return lane_literal(address.offsets)
    return code.iadd(address.scattered, lane_literal(address.offsets)) if any(address.offsets) else address.scattered


def _pointer(code: Code, address: Address, base: ll.Value) -> ll.Value:
    return code.builder.gep(address.pointer, [base], source_etype=memory_type(address.dtype))


def _aligned(access: ll.Instruction, type_: ll.Type, alignment: int = 0) -> ll.Instruction:
    """Aligns an access and returns it: arrays may start at any element, so a vector access is only as aligned as one of
    its elements, unless more is known."""
    access.align = max(alignment, _bytes(type_))
    return access


def _bytes(type_: ll.Type) -> int:
    """Returns the size of an element."""
    scalar = element(type_)
    if isinstance(scalar, ll.DoubleType):
        return 8
    return 4 if isinstance(scalar, ll.FloatType) else scalar.width // 8


def _mask(mask: ll.Value | None, lanes: int) -> ll.Value:
    return mask if mask is not None else Literal(ll.VectorType(I1, lanes), "splat (i1 true)")
