"""Operations of all threads of a block: barriers, and reductions of their values, by shuffles between threads if the
device has them, and through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.llvm.code import I1, I8, I32, I64, Code
from trivium.compiler.kernel.structure import Buffer, Load, MemoryAccess

Values = list[ll.Value]
Fold = Callable[[Values, Values], Values]


class Team:
    """Threads of a block: `size` of them, a power of two; `thread` is the number of this one. The block has `beside`
    such teams, of which this is the one with the number `place`, whose threads are neighbours, unless teams are
    `columns`. It remembers what memory was read and written since the last barrier."""

    def __init__(
        self,
        code: Code,
        dialect: Dialect,
        size: int,
        thread: ll.Value,
        beside: int = 1,
        place: ll.Value | None = None,
        columns: bool = False,
    ):
        self._code, self._dialect = code, dialect
        self.size, self.thread = size, thread
        self._beside, self._place = beside, place
        self._exchanging = 1 if columns else min(dialect.shuffles, size)
        self._read: set[Buffer | None] = set()
        self._written: set[Buffer | None] = set()

    def uses(self, *accesses: MemoryAccess) -> None:
        """Says which memory is read and written next. There is a barrier before, if other threads may have written it,
        or may still read what is written."""
        reads = {_memory(access) for access in accesses if isinstance(access, Load)}
        writes = {_memory(access) for access in accesses if not isinstance(access, Load)}
        if (reads | writes) & self._written or writes & self._read:
            self.meet()
        self._read |= reads
        self._written |= writes

    def meet(self) -> None:
        """Emits a barrier."""
        self._dialect.barrier(self._code)
        self._read.clear()
        self._written.clear()

    def folded(self, values: Values, fold: Fold) -> Values:
        """Returns the fold of all threads' values, to each of them."""
        exchanging = self._exchanging
        values = self._exchanged(values, exchanging, fold)
        groups = self.size // exchanging
        if groups == 1:
            return self._first(values) if exchanging > 1 else values
        memory = [self._memory(value.type, groups) for value in values]
        if exchanging > 1:
            return self._folded_groups(values, memory, groups, fold)
        return self._folded_in_memory(values, memory, fold)

    def scanned(self, values: Values, start: Values, fold: Fold, again: bool) -> tuple[Values, Values]:
        """Returns the fold of `start` and the values of all threads before this one, and of all threads. `again`: the
        memory that it takes may still be read by other threads."""
        builder, exchanging = self._code.builder, self._exchanging
        lane, group = (f(self.thread, I32(exchanging)) for f in (builder.urem, builder.udiv))
        width = 1
        while width < exchanging:
            below = fold([self._shuffled(value, -width) for value in values], values)
            values = self._chosen(builder.icmp_unsigned(">=", lane, I32(width)), below, values)
            width *= 2
        groups = self.size // exchanging
        memory = [self._memory(value.type, groups) for value in values]
        if again:
            self.meet()
        with builder.if_then(builder.icmp_unsigned("==", lane, I32(exchanging - 1))):
            for slot, value in zip(memory, values, strict=True):
                slot.store(group, value)
        self.meet()
        before = total = start
        for number in range(groups):
            total = fold(total, [slot.load(I32(number)) for slot in memory])
            before = self._chosen(builder.icmp_unsigned(">", group, I32(number)), total, before)
        inside = fold(before, [self._shuffled(value, -1) for value in values])
        return self._chosen(builder.icmp_unsigned(">", lane, I32(0)), inside, before), total

    def _memory(self, kind: ll.Type, count: int) -> _Shared:
        return _Shared(self._code, self._dialect, kind, count, self._beside, self._place)

    def _chosen(self, condition: ll.Value, values: Values, others: Values) -> Values:
        return [self._code.builder.select(condition, *pair) for pair in zip(values, others, strict=True)]

    def _exchanged(self, values: Values, threads: int, fold: Fold) -> Values:
        """Folds the values of neighbouring threads. The first one of them then has the result."""
        while threads > 1:
            threads //= 2
            values = fold(values, [self._shuffled(value, threads) for value in values])
        return values

    def _folded_groups(self, values: Values, memory: Sequence[_Shared], groups: int, fold: Fold) -> Values:
        """Folds the results of the groups that exchange words: every group folds all of them."""
        code, exchanging = self._code, self._exchanging
        lane = code.builder.urem(self.thread, I32(exchanging))
        with code.builder.if_then(code.builder.icmp_unsigned("==", lane, I32(0))):
            group = code.builder.udiv(self.thread, I32(exchanging))
            for slot, value in zip(memory, values, strict=True):
                slot.store(group, value)
        self.meet()
        own = code.builder.urem(lane, I32(groups))
        values = [slot.load(own) for slot in memory]
        return self._first(self._exchanged(values, groups, fold))

    def _folded_in_memory(self, values: Values, memory: Sequence[_Shared], fold: Fold) -> Values:
        """Folds all threads' values in memory: in each step, half of those that are left."""
        builder = self._code.builder
        for slot, value in zip(memory, values, strict=True):
            slot.store(self.thread, value)
        left = self.size
        while left > 1:
            left //= 2
            self.meet()
            with builder.if_then(builder.icmp_unsigned("<", self.thread, I32(left))):
                mine = [slot.load(self.thread) for slot in memory]
                other = [slot.load(builder.add(self.thread, I32(left))) for slot in memory]
                for slot, value in zip(memory, fold(mine, other), strict=True):
                    slot.store(self.thread, value)
        self.meet()
        return [slot.load(I32(0)) for slot in memory]

    def _first(self, values: Values) -> Values:
        return [self._shuffled(value, None) for value in values]

    def _shuffled(self, value: ll.Value, lanes: int | None) -> ll.Value:
        """Returns the value of another thread of those that exchange words, which move 32 bits at a time."""
        builder, bits = self._code.builder, _bits(value.type)
        number = builder.bitcast(value, ll.IntType(bits)) if not isinstance(value.type, ll.IntType) else value
        if bits <= 32:
            moved = self._dialect.shuffled(self._code, _resized(self._code, number, I32), lanes)
            number = _resized(self._code, moved, ll.IntType(bits))
        else:
            halves = builder.trunc(number, I32), builder.trunc(builder.lshr(number, I64(32)), I32)
            low, high = (builder.zext(self._dialect.shuffled(self._code, half, lanes), I64) for half in halves)
            number = builder.or_(low, builder.shl(high, I64(32)))
        return number if number.type == value.type else builder.bitcast(number, value.type)


def _memory(access: MemoryAccess) -> Buffer | None:
    """Returns the scratch buffer that is accessed; None for all others, of which two may be the same memory."""
    return access.buffer if access.buffer.mode == "scratch" else None


class _Shared:
    """An array in memory of the block, for one of the teams that are beside one another."""

    def __init__(
        self, code: Code, dialect: Dialect, kind: ll.Type, count: int, beside: int = 1, place: ll.Value | None = None
    ):
        self._code, self._kind = code, kind
        self._beside, self._place = beside, place
        self._stored = I8 if kind == I1 else kind
        self._memory = dialect.shared(code, count * beside * _bits(self._stored) // 8)

    def store(self, index: ll.Value, value: ll.Value) -> None:
        stored = value if self._stored == self._kind else self._code.builder.zext(value, self._stored)
        self._code.builder.store(stored, self._at(index))

    def load(self, index: ll.Value) -> ll.Value:
        loaded = self._code.builder.load(self._at(index), typ=self._stored)
        return loaded if self._stored == self._kind else self._code.builder.trunc(loaded, self._kind)

    def _at(self, index: ll.Value) -> ll.Value:
        builder = self._code.builder
        if self._place is not None:
            index = builder.add(builder.mul(index, I32(self._beside)), self._place)
        return builder.gep(self._memory, [index], source_etype=self._stored)


def _bits(kind: ll.Type) -> int:
    if isinstance(kind, ll.IntType):
        return kind.width
    return 64 if isinstance(kind, ll.DoubleType) else 32


def _resized(code: Code, number: ll.Value, kind: ll.IntType) -> ll.Value:
    if number.type.width == kind.width:
        return number
    return (code.builder.zext if number.type.width < kind.width else code.builder.trunc)(number, kind)
