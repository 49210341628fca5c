"""Small words for writing vector LLVM IR: constants, counted loops, masked memory access. Every contraction template is
written in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import llvmlite.ir as ll

from trivium.backends.cpu.target import CACHE_LINE

I1 = ll.IntType(1)
I32 = ll.IntType(32)
I64 = ll.IntType(64)
POINTER = ll.PointerType()

STACK_LIMIT = 16 * 1024

Number = int | ll.Value
"""An index: a Python int where it is known, else an i64."""


def index(value: Number) -> ll.Value:
    return ll.Constant(I64, value) if isinstance(value, int) else value


@dataclass
class Loop:
    """The inside of a counted loop: its index, the values it carries, and, set by the body, their next values."""

    index: ll.Value
    carried: list[ll.Value]
    next: list[ll.Value] = field(default_factory=list)


class Emission:
    """An LLVM builder with the element type and vector width of one contraction."""

    def __init__(self, builder: ll.IRBuilder, element: ll.Type, lanes: int) -> None:
        self.builder = builder
        self.element = element
        self.lanes = lanes
        self.vector = ll.VectorType(element, lanes)
        self.mask = ll.VectorType(I1, lanes)
        self.lane_index = ll.VectorType(I32, lanes)
        self.bytes = 4 if isinstance(element, ll.FloatType) else 8
        self._heap: list[ll.Value] = []
        self.zero = ll.Constant(self.vector, [0.0] * lanes)

    # -- index arithmetic: Python ints fold, i64 and lane vectors mix

    def add(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self.builder.add(*self._alike(a, b))

    def sub(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if isinstance(b, int) and b == 0 else self.builder.sub(*self._alike(a, b))

    def mul(self, a: Number, b: int) -> Number:
        if isinstance(a, int):
            return a * b
        if b in (0, 1):
            return a if b else 0
        return self.builder.mul(*self._alike(a, b))

    def product(self, a: Number, b: Number) -> Number:
        """Of two numbers of which neither need be known."""
        if isinstance(a, int):
            a, b = b, a
        return self.mul(a, b) if isinstance(b, int) else self.builder.mul(index(a), b)

    def divmod(self, a: Number, b: int) -> tuple[Number, Number]:
        """Of a non-negative number by a known one."""
        if isinstance(a, int):
            return divmod(a, b)
        if b == 1:
            return a, 0
        quotient = self.builder.udiv(*self._alike(a, b))
        return quotient, self.sub(a, self.mul(quotient, b))

    def minimum(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        a, b = self._alike(a, b)
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def maximum(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        a, b = self._alike(a, b)
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def below(self, a: Number, bound: Number) -> ll.Value:
        """Whether 0 <= a < bound."""
        return self.builder.icmp_unsigned("<", *self._alike(a, bound))

    def _alike(self, a: Number, b: Number) -> tuple[ll.Value, ll.Value]:
        wide = any(not isinstance(x, int) and isinstance(x.type, ll.VectorType) for x in (a, b))
        return (self.to_lanes(a), self.to_lanes(b)) if wide else (index(a), index(b))

    def to_lanes(self, a: Number) -> ll.Value:
        """`a` in every lane, as 32 bits: lanes hold places inside one operand."""
        if isinstance(a, int):
            return ll.Constant(self.lane_index, [a] * self.lanes)
        return a if isinstance(a.type, ll.VectorType) else self.splat(self.builder.trunc(a, I32))

    def iota(self) -> ll.Value:
        return ll.Constant(self.lane_index, list(range(self.lanes)))

    # -- memory

    def at(self, base: ll.Value, offset: Number) -> ll.Value:
        """`base` + `offset` elements."""
        if isinstance(offset, int) and offset == 0:
            return base
        return self.builder.gep(base, [index(offset)], source_etype=self.element)

    def splat(self, scalar: ll.Value) -> ll.Value:
        vector = ll.VectorType(scalar.type, self.lanes)
        single = self.builder.insert_element(ll.Constant(vector, ll.Undefined), scalar, ll.Constant(I32, 0))
        order = ll.Constant(ll.VectorType(I32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(single, ll.Constant(vector, ll.Undefined), order)

    def shuffle(self, a: ll.Value, b: ll.Value, order: list[int]) -> ll.Value:
        """The lanes of a, then b, in the given order."""
        return self.builder.shuffle_vector(a, b, ll.Constant(self.lane_index, order))

    def broadcast(self, pointer: ll.Value) -> ll.Value:
        return self.splat(self.builder.load(pointer, typ=self.element))

    def load(self, pointer: ll.Value, mask: ll.Value | None = None, otherwise: ll.Value | None = None) -> ll.Value:
        """A vector; where `mask` is off, the lanes of `otherwise` (or zero), and memory is not touched."""
        if mask is None:
            return self.builder.load(pointer, align=self.bytes, typ=self.vector)
        operands = [pointer, self._alignment(), mask, self.zero if otherwise is None else otherwise]
        return self._call("llvm.masked.load", f"{self._suffix}.p0", self.vector, operands)

    def store(self, value: ll.Value, pointer: ll.Value, mask: ll.Value | None = None) -> None:
        if mask is None:
            self.builder.store(value, pointer, align=self.bytes)
            return
        self._call("llvm.masked.store", f"{self._suffix}.p0", ll.VoidType(), [value, pointer, self._alignment(), mask])

    def gather(self, base: ll.Value, offsets: ll.Value, mask: ll.Value) -> ll.Value:
        """The elements at `base` + lane offsets; zero where `mask` is off."""
        operands = [self._lane_pointers(base, offsets), self._alignment(), mask, self.zero]
        return self._call("llvm.masked.gather", f"{self._suffix}.v{self.lanes}p0", self.vector, operands)

    def prefetch(self, pointer: ll.Value) -> None:
        """Asks for a cache line, to be read soon, in the second-level cache."""
        read, second_level, data = (ll.Constant(I32, number) for number in (0, 2, 1))
        self._call("llvm.prefetch", "p0", ll.VoidType(), [pointer, read, second_level, data])

    def _alignment(self) -> ll.Value:
        return ll.Constant(I32, self.bytes)

    def _lane_pointers(self, base: ll.Value, offsets: ll.Value) -> ll.Value:
        places = self.builder.gep(base, [offsets], source_etype=self.element)
        places.type = ll.VectorType(POINTER, self.lanes)  # llvmlite gives it the base's type
        return places

    def fma(self, a: ll.Value, b: ll.Value, c: ll.Value) -> ll.Value:
        return self._call("llvm.fma", self._suffix, self.vector, [a, b, c])

    def lanes_below(self, count: Number) -> ll.Value:
        """The mask of the first `count` lanes."""
        return self.builder.icmp_signed("<", self.iota(), self.to_lanes(count))

    def both(self, a: ll.Value | None, b: ll.Value | None) -> ll.Value | None:
        """Conjunction of masks, where None is true; scalars spread over the lanes."""
        if a is None or b is None:
            return a if b is None else b
        if a.type != b.type:
            a, b = (x if isinstance(x.type, ll.VectorType) else self.splat(x) for x in (a, b))
        return self.builder.and_(a, b)

    @property
    def _suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.bytes}"

    def _call(self, name: str, suffix: str, result: ll.Type, operands: Sequence[ll.Value]) -> ll.Value:
        """Calls an intrinsic, declared on first use."""
        return self._call_c(f"{name}.{suffix}", result, operands)

    def _call_c(self, name: str, result: ll.Type, operands: Sequence[ll.Value]) -> ll.Value:
        """Calls a function by name, declared on first use."""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ll.Function(module, ll.FunctionType(result, [operand.type for operand in operands]), name)
        return self.builder.call(function, operands)

    def reserve(self, count: int, name: str) -> ll.Value:
        """Room for `count` elements, aligned to a cache line, taken at the function's entry: small rooms from the
        stack, large ones from the heap, because threads that others made may have little stack. `release` gives it
        back."""
        size = count * self.bytes
        with self.builder.goto_entry_block():
            if size <= STACK_LIMIT:
                room = self.builder.alloca(ll.ArrayType(self.element, count), name=name)
                room.align = CACHE_LINE
                room.type = POINTER  # llvmlite still types what alloca gives
                return room
            memory = self._call_c("malloc", POINTER, [ll.Constant(I64, size + CACHE_LINE)])
            self._heap.append(memory)
            past = self.builder.ptrtoint(memory, I64)
            rest = self.builder.and_(self.builder.neg(past), ll.Constant(I64, CACHE_LINE - 1))
            return self.builder.gep(memory, [rest], source_etype=ll.IntType(8))

    def release(self) -> None:
        """Gives back what was reserved, at the function's end."""
        for memory in self._heap:
            self._call_c("free", ll.VoidType(), [memory])

    # -- control flow

    @contextmanager
    def loop(
        self, begin: Number, end: Number, carried: Sequence[ll.Value] = (), step: int = 1, nonempty: bool = False
    ) -> Iterator[Loop]:
        """Runs its body for begin, begin + step, ... below `end`. Tested at the bottom; `nonempty` loops, and those
        with known bounds, have no test before. Carried values need a nonempty loop, and `carried` holds their final
        values after it."""
        nonempty = nonempty or (isinstance(begin, int) and isinstance(end, int) and begin < end)
        assert nonempty or not carried
        builder = self.builder
        body, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        if nonempty:
            builder.branch(body)
        else:
            builder.cbranch(builder.icmp_signed("<", index(begin), index(end)), body, after)
        before = builder.block
        builder.position_at_end(body)
        phis = [builder.phi(value.type) for value in (index(begin), *carried)]
        for phi, value in zip(phis, (index(begin), *carried), strict=True):
            phi.add_incoming(value, before)
        state = Loop(phis[0], phis[1:])
        yield state
        following = [builder.add(state.index, ll.Constant(I64, step)), *state.next]
        for phi, value in zip(phis, following, strict=True):
            phi.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<", following[0], index(end)), body, after)
        builder.position_at_end(after)
        state.carried = state.next
