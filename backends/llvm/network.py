"""Sorting in registers: a network over the lanes of a power of two of vectors. Elements are compared only across
vectors, never across lanes. Columns, which have one element of each vector, are sorted first, by odd-even merges; then
they are merged in bitonic order. The network numbers its elements; each bit of that number selects either half of the
vectors or, in every vector, half of the lanes. Where elements are to be compared across a bit of the second kind, this
bit and one of the first kind trade places, by one shuffle for each vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import llvmlite.ir as ll

from trivium.backends.llvm.code import Code, Literal, literal
from trivium.backends.llvm.memory import opaque
from trivium.backends.llvm.squares import exchange


def sorted_vectors(code: Code, vectors: Sequence[ll.Value]) -> list[ll.Value]:
    """Returns the elements of two or more vectors of signed integers in ascending order."""
    return _Network(code, vectors).sorted()


def ordered(code: Code, a: ll.Value, b: ll.Value) -> tuple[ll.Value, ll.Value]:
    """Returns the smaller lanes of two vectors of signed integers, and the larger ones."""
    # LLVM would look for known bits of each number in six steps back from it: that takes longer than all the rest.
    low = opaque(code, code.intrinsic("llvm.smin", a, b))
    if code.target.vector_bytes == 64:
        # One instruction of AVX-512, which more units of some processors execute than maxima.
        return low, code.builder.xor(code.builder.xor(a, b), low)
    return low, code.intrinsic("llvm.smax", a, b)


class _Network:
    """`places` are the places of the bits of an element's number: the bits of a lane's number, and above these, the
    bits of a vector's. Elements are complemented, so that their order is reversed, if the bit `complemented` is
    set."""

    def __init__(self, code: Code, vectors: Sequence[ll.Value]):
        self.code, self.vectors = code, list(vectors)
        self.lanes = vectors[0].type.count
        self.lane_bits, self.across = self.lanes.bit_length() - 1, len(vectors).bit_length() - 1
        self.bits = self.lane_bits + self.across
        # The elements of a column have successive numbers.
        self.places = [*range(self.lane_bits, self.bits), *range(self.lane_bits)]
        self.complemented: int | None = None
        self.uses = [bit for size in range(self.across + 1, self.bits + 1) for bit in reversed(range(size))]
        """The bits that are still to be compared across, in order."""

    def sorted(self) -> list[ll.Value]:
        """Sorts columns, every other one of them in descending order, and merges sorted blocks of 2^(size - 1)
        elements."""
        for size in range(self.across, self.bits + 1):
            self._complement(size if size < self.bits else None)
            if size == self.across:
                for pair in odd_even(0, len(self.vectors)):
                    self._order(*pair)
            else:
                for _ in range(size):
                    self._compare(self.uses.pop(0))
        self._restore()
        return self.vectors

    def _compare(self, bit: int) -> None:
        """Puts pairs of elements that differ in a bit in order."""
        if self.places[bit] < self.lane_bits:
            in_vectors = [b for b, place in enumerate(self.places) if place >= self.lane_bits]
            self._exchange(bit, max(in_vectors, key=self._next_use))
        other = 1 << (self.places[bit] - self.lane_bits)
        for i in range(len(self.vectors)):
            if not i & other:
                self._order(i, i + other)

    def _order(self, i: int, j: int) -> None:
        """Puts the smaller elements of two vectors into the first of them."""
        self.vectors[i], self.vectors[j] = ordered(self.code, self.vectors[i], self.vectors[j])

    def _next_use(self, bit: int) -> int:
        return self.uses.index(bit) if bit in self.uses else len(self.uses)

    def _exchange(self, bit: int, other: int) -> None:
        """Lets a bit that selects lanes trade places with one that selects vectors."""
        low, high = exchange(self.lanes, 1 << self.places[bit])
        distance = 1 << (self.places[other] - self.lane_bits)
        for i in range(len(self.vectors)):
            if not i & distance:
                pair = self.vectors[i], self.vectors[i + distance]
                moved = (self.code.shuffle(pair[0], order, pair[1]) for order in (low, high))
                self.vectors[i], self.vectors[i + distance] = moved
        self.places[bit], self.places[other] = self.places[other], self.places[bit]

    def _complement(self, bit: int | None) -> None:
        """Complements the elements that have a bit, and no longer those that had to be complemented until now."""
        changes = [b for b in (self.complemented, bit) if b is not None]
        self.complemented = bit
        for i, vector in enumerate(self.vectors):
            places = range(i * self.lanes, (i + 1) * self.lanes)
            masks = [-(sum(self._has(place, b) for b in changes) % 2) for place in places]
            if any(masks):
                self.vectors[i] = self.code.builder.xor(vector, _constant(vector.type, masks))

    def _has(self, place: int, bit: int) -> int:
        """Returns the bit of the number of the element at a place."""
        return place >> self.places[bit] & 1

    def _restore(self) -> None:
        """Lets elements with successive numbers be neighbours."""
        lanes = range(self.lane_bits)
        while outside := [bit for bit in lanes if self.places[bit] >= self.lane_bits]:
            self._exchange(self.places.index(outside[0]), outside[0])
        order = tuple(sum((lane >> bit & 1) << self.places[bit] for bit in lanes) for lane in range(self.lanes))
        numbers = range(self.lane_bits, self.bits)
        vectors = [
            self.vectors[sum((n >> (b - self.lane_bits) & 1) << (self.places[b] - self.lane_bits) for b in numbers)]
            for n in range(len(self.vectors))
        ]
        in_order = order == tuple(range(self.lanes))
        self.vectors = vectors if in_order else [self.code.shuffle(vector, order) for vector in vectors]


def odd_even(first: int, count: int) -> Iterator[tuple[int, int]]:
    """Returns the pairs that Batcher's odd-even merge sort puts in order, of `count` elements, a power of two, from
    `first` on."""
    if count > 1:
        half = count // 2
        yield from odd_even(first, half)
        yield from odd_even(first + half, half)
        yield from _merges(first, count, 1)


def _merges(first: int, count: int, apart: int) -> Iterator[tuple[int, int]]:
    """Returns those that merge two sorted halves of `count` elements, of every `apart`-th of them."""
    if 2 * apart == count:
        yield first, first + apart
        return
    yield from _merges(first, count, 2 * apart)
    yield from _merges(first + apart, count, 2 * apart)
    for i in range(first + apart, first + count - apart, 2 * apart):
        yield i, i + apart


def _constant(type_: ll.VectorType, numbers: Sequence[int]) -> ll.Value:
    if len(set(numbers)) == 1:
        return literal(type_, numbers[0])
    return Literal(type_, f"<{', '.join(f'{type_.element} {number}' for number in numbers)}>")
