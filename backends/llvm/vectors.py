"""Code for vectors of one element type and one number of lanes, as templates use it: addresses in elements, loads and
stores of whole vectors, masks of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.apply import convert
from trivium.backends.llvm.code import I32, Code, literal
from trivium.backends.llvm.loops import Loop, counted
from trivium.backends.llvm.narrow import from_memory, memory_type
from trivium.backends.llvm.numbers import Int, Number, i64, in_lanes
from trivium.backends.llvm.target import LlvmTarget


class Vectors(Code):
    """`element` is the scalar type, `vector` the type of `lanes` of them, and `stored` that of an element in memory."""

    def __init__(
        self, builder: ll.IRBuilder, target: LlvmTarget, element: ll.Type, lanes: int, fast_math: bool = False
    ) -> None:
        super().__init__(builder, target, fast_math)
        self.element, self.lanes = element, lanes
        self.vector = ll.VectorType(element, lanes)
        self.stored = element
        self.zero = literal(self.vector, 0.0)

    def with_lanes(self, lanes: int) -> Vectors:
        """Returns the same for vectors of this length."""
        return Vectors(self.builder, self.target, self.element, lanes)

    # Numbers

    def lane_numbers(self) -> Int:
        """Returns 0, 1, 2, ...: the number of each lane."""
        return Int(self, ll.Constant(ll.VectorType(I32, self.lanes), list(range(self.lanes))))

    def spread(self, first: Number) -> Int:
        """Returns `first` in lane 0, and one more in each lane after it."""
        return Int(self, self.builder.add(in_lanes(self, first, self.lanes), self.lane_numbers().value))

    def lanes_below(self, count: Number) -> ll.Value:
        """Returns the mask of the first `count` lanes."""
        return self.builder.icmp_signed("<", self.lane_numbers().value, in_lanes(self, count, self.lanes))

    def conjunction(self, a: ll.Value | None, b: ll.Value | None) -> ll.Value | None:
        """Returns the conjunction of masks, where None is true; scalars are spread over the lanes."""
        if a is None or b is None:
            return a if b is None else b
        if a.type != b.type:
            a, b = self.splat(a, self.lanes), self.splat(b, self.lanes)
        return self.builder.and_(a, b)

    # Memory

    def at(self, base: ll.Value, offset: Number) -> ll.Value:
        """Returns the address `base` + `offset` elements."""
        if isinstance(offset, int) and offset == 0:
            return base
        return self.builder.gep(base, [i64(offset)], source_etype=self.stored)

    def load(self, pointer: ll.Value, mask: ll.Value | None = None, otherwise: ll.Value | None = None) -> ll.Value:
        """Returns a vector; where `mask` is off, the lanes of `otherwise` (or zero), without touching memory."""
        return memory.load_vector(self, pointer, self.vector, mask, otherwise)

    def load_every_second(self, pointer: ll.Value) -> ll.Value:
        """Returns every second element from `pointer` on, without touching memory after the last one."""
        ends = pointer, self.at(pointer, self.lanes - 1)
        return self._loaded(memory.load_every_second(self, ends, ll.VectorType(self.stored, self.lanes)))

    def every_second(self, first: ll.Value, second: ll.Value) -> ll.Value:
        """Returns every second element of two vectors."""
        places = ll.Constant(ll.VectorType(I32, self.lanes), list(range(0, 2 * self.lanes, 2)))
        return self.builder.shuffle_vector(first, second, places)

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        """Writes a vector, or the lanes of it for which `mask` is on."""
        memory.store_vector(self, value, pointer, mask)

    def gather(self, base: ll.Value, offsets: Number, mask: ll.Value) -> ll.Value:
        """Returns the elements at `base` + lane offsets; zero where `mask` is off."""
        pointers = memory.lane_pointers(self, base, in_lanes(self, offsets, self.lanes), self.stored)
        return self._loaded(memory.gather(self, pointers, ll.VectorType(self.stored, self.lanes), mask))

    def broadcast(self, pointer: ll.Value) -> ll.Value:
        """Returns one element, repeated in every lane."""
        return self.splat(self._loaded(self.builder.load(pointer, typ=self.stored)), self.lanes)

    def _loaded(self, raw: ll.Value) -> ll.Value:
        """Returns the value of what was loaded: an element, or one for each lane."""
        return raw

    # Loops

    def loop(
        self,
        begin: Number,
        end: Number,
        carried: Sequence[ll.Value] = (),
        step: int = 1,
        nonempty: bool = False,
    ) -> AbstractContextManager[Loop]:
        """`counted`, with this code. The index is opaque: code as fast is made in less time, because addresses are
        sums of pointers that are computed before the loop and multiples of the index."""
        return counted(self, begin, end, step, carried, nonempty, opaque=True)


class Converted(Vectors):
    """Vectors of f32 or f64 that are read from elements of another type in memory, `dtype`, and converted. They are not
    written."""

    def __init__(self, like: Vectors, dtype: str) -> None:
        super().__init__(like.builder, like.target, like.element, like.lanes)
        self.dtype, self.stored = dtype, memory_type(dtype)

    def load(self, pointer: ll.Value, mask: ll.Value | None = None, otherwise: ll.Value | None = None) -> ll.Value:
        value = self._loaded(memory.load_vector(self, pointer, ll.VectorType(self.stored, self.lanes), mask))
        return value if mask is None or otherwise is None else self.select(mask, value, otherwise)

    def with_lanes(self, lanes: int) -> Converted:
        return Converted(super().with_lanes(lanes), self.dtype)

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        raise AssertionError("vectors that are converted when they are read are not written")

    def _loaded(self, raw: ll.Value) -> ll.Value:
        wide = "f64" if isinstance(self.element, ll.DoubleType) else "f32"
        return convert(self, from_memory(self, raw, self.dtype), self.dtype, wide)
