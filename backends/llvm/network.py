"""Sorting in registers: a bitonic network over the lanes of a power of two of vectors. Elements are compared only
across vectors, never across lanes. The network numbers its elements; each bit of that number selects either half of the
vectors or, in every vector, half of the lanes. Where elements are to be compared across a bit of the second kind, this
bit and one of the first kind trade places, by one shuffle for each vector."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.llvm.code import Code, Literal, literal
from trivium.backends.llvm.squares import exchange


def sorted_vectors(code: Code, vectors: Sequence[ll.Value]) -> list[ll.Value]:
    """Returns the elements of two or more vectors of signed integers in ascending order."""
    return _Network(code, vectors).sorted()


class _Network:
    """`places` are the places of the bits of an element's number: the bits of a lane's number, and above these, the
    bits of a vector's. Elements are complemented, so that their order is reversed, if the bit `complemented` is
    set."""

    def __init__(self, code: Code, vectors: Sequence[ll.Value]):
        self.code, self.vectors = code, list(vectors)
        self.lanes = vectors[0].type.count
        self.lane_bits, self.across = self.lanes.bit_length() - 1, len(vectors).bit_length() - 1
        self.bits = self.lane_bits + self.across
        # The first merges then compare across vectors only.
        self.places = [*range(self.lane_bits, self.bits), *range(self.lane_bits)]
        self.complemented: int | None = None
        self.uses = [bit for size in range(1, self.bits + 1) for bit in reversed(range(size))]
        """The bits that are still to be compared across, in order."""

    def sorted(self) -> list[ll.Value]:
        """Merges sorted blocks of 2^(size - 1) elements, every other one of them in descending order."""
        for size in range(1, self.bits + 1):
            if size >= self.across:
                self._complement(size if size < self.bits else None)
            for _ in range(size):
                self._compare(self.uses.pop(0), size if size < self.across else None)
        self._restore()
        return self.vectors

    def _compare(self, bit: int, descending: int | None) -> None:
        """Puts pairs of elements that differ in a bit in order; those with the bit `descending` in descending order."""
        if self.places[bit] < self.lane_bits:
            in_vectors = [b for b, place in enumerate(self.places) if place >= self.lane_bits]
            self._exchange(bit, max(in_vectors, key=self._next_use))
        other = 1 << (self.places[bit] - self.lane_bits)
        for i in range(len(self.vectors)):
            if not i & other:
                pair = self.vectors[i], self.vectors[i + other]
                low, high = (self.code.intrinsic(f"llvm.{name}", *pair) for name in ("smin", "smax"))
                turned = descending is not None and self._has(i * self.lanes, descending)
                self.vectors[i], self.vectors[i + other] = (high, low) if turned else (low, high)

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


def _constant(type_: ll.VectorType, numbers: Sequence[int]) -> ll.Value:
    if len(set(numbers)) == 1:
        return literal(type_, numbers[0])
    return Literal(type_, f"<{', '.join(f'{type_.element} {number}' for number in numbers)}>")
