"""Sorting of signed integers, in place, by vectors: a quicksort, whose partitions compress the smaller and the other
lanes of each vector, down to blocks that fit in registers (`network`). A pivot is estimated from a sample. A part that
is left of a bad split is split at the middle of its range of values, which happens at most once for each bit of the
range; so the number of passes is bounded by the bits of the keys and of their number, whatever the keys are.

Code for each type is one function of a module, `void (ptr keys, ptr spare, i64 count, i1 away, i1 middle)`. Both places
have room for `count` keys, which are in the first one; the sorted ones go to the second one if `away`."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I1, I8, I32, I64, POINTER, Code, Literal, literal, mangle, undefined
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.network import odd_even, ordered, sorted_vectors
from trivium.backends.llvm.numbers import Int, i64
from trivium.backends.llvm.target import LlvmTarget

SAMPLE = 4
"""The number of vectors whose keys are a sample. A pivot is the median of the lanes' medians."""

AHEAD, LINE = 512, 64
"""How many bytes ahead a partition requests the lines that it stores to, which may be in the second-level cache or in
memory; and the bytes of a line."""

LOPSIDED = 16
"""A split is bad if one side has less than this share of the elements."""

TOGETHER = 8
"""The number of vectors that a partition loads before it stores any: a load waits for earlier stores whose addresses
have the same last 12 bits, on some processors."""


def emit_sort(code: Code, bits: int, keys: ll.Value, spare: ll.Value, count: int) -> None:
    """Emits the sort of `count` integers of 32 or 64 bits at `keys`; `spare` has room for as many."""
    sort = _Sort(code.builder.module, bits, code.target)
    if (block := sort.block_of(count)) is not None:
        code.builder.call(block, [keys, keys, I64(count)])
    else:
        code.builder.call(sort.whole(), [keys, spare, I64(count), I1(0), I1(0)])


def key_sort(module: ll.Module, bits: int, target: LlvmTarget) -> ll.Function:
    """Returns the module's function that sorts integers of 32 or 64 bits."""
    return _Sort(module, bits, target).whole()


def key_split(module: ll.Module, bits: int, target: LlvmTarget) -> ll.Function:
    """Returns the function `void (ptr part, ptr other)`, which splits the keys of one `State` in memory into two, of
    which both may be empty. There is one if the target has several threads."""
    return module.globals[key_sort(module, bits, target).name + SPLIT]


SPLIT = ".split"

State = tuple[ll.Value, ...]
"""The arguments of a sort. In memory each takes `FIELD` bytes."""

FIELD = 8
FIELDS = POINTER, POINTER, I64, I1, I1


def load_state(code: Code, place: ll.Value) -> State:
    places = [code.builder.gep(place, [I64(FIELD * n)], source_etype=I8) for n in range(len(FIELDS))]
    return tuple(code.builder.load(at, typ=type_) for at, type_ in zip(places, FIELDS, strict=True))


def store_state(code: Code, place: ll.Value, state: State) -> None:
    for n, value in enumerate(state):
        code.builder.store(value, code.builder.gep(place, [I64(FIELD * n)], source_etype=I8))


class _Sort:
    def __init__(self, module: ll.Module, bits: int, target: LlvmTarget):
        self.module, self.name, self.type, self.target = module, f"sort.i{bits}", ll.IntType(bits), target
        self.lanes = target.vector_bytes * 8 // bits
        self.vector = ll.VectorType(self.type, self.lanes)
        # Half of the registers; the other half is for the next elements.
        most = target.vector_registers // 2
        self.counts = [1 << n for n in range(1, most.bit_length())]

    def whole(self) -> ll.Function:
        """Returns the function that sorts any number of keys."""
        return self.module.globals.get(self.name) or self._define()

    def block_of(self, count: int) -> ll.Function | None:
        """Returns the function that sorts up to `count` keys in registers; None if those do not hold as many."""
        return next((self._block(vectors) for vectors in self.counts if count <= vectors * self.lanes), None)

    def _block(self, vectors: int) -> ll.Function:
        suffix = f".{vectors}"
        found = self.module.globals.get(self.name + suffix)
        if found is None:
            found = self._function(suffix, 3)
            self._define_block(found, vectors)
        return found

    def _function(self, suffix: str, arguments: int) -> ll.Function:
        types = [POINTER, POINTER, I64, I1, I1][:arguments]
        function = ll.Function(self.module, ll.FunctionType(ll.VoidType(), types), self.name + suffix)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        return function

    def _define(self) -> ll.Function:
        function = self._function("", 5)
        self._define_sort(function)
        if self.target.threads > 1:
            self._define_split()
        return function

    def _open(self, function: ll.Function) -> Code:
        return Code(ll.IRBuilder(function.append_basic_block("entry")), self.target)

    def _at(self, code: Code, pointer: ll.Value, index: ll.Value) -> ll.Value:
        return code.builder.gep(pointer, [index], source_etype=self.type)

    def _leading(self, code: Code, count: ll.Value) -> ll.Value:
        """Returns the mask of as many lanes; of all if there are fewer."""
        count = code.builder.trunc(code.intrinsic("llvm.smin", count, I64(self.lanes)), I32)
        numbers = Literal(ll.VectorType(I32, self.lanes), f"<{', '.join(f'i32 {n}' for n in range(self.lanes))}>")
        return code.icompare("<", numbers, code.splat(count, self.lanes))

    def _define_block(self, function: ll.Function, count: int) -> None:
        """Sorts up to `count` vectors in registers."""
        code, (source, target, number) = self._open(function), function.args
        largest = literal(self.vector, (1 << (self.type.width - 1)) - 1)
        places = [I64(n * self.lanes) for n in range(count)]
        masks = [self._leading(code, code.isub(number, place)) for place in places]
        pairs = list(zip(places, masks, strict=True))
        loaded = [memory.load_vector(code, self._at(code, source, n), self.vector, m, largest) for n, m in pairs]
        for (place, mask), vector in zip(pairs, sorted_vectors(code, loaded), strict=True):
            memory.store_vector(code, vector, self._at(code, target, place), mask)
        code.builder.ret_void()

    def _define_sort(self, function: ll.Function) -> None:
        """Splits the larger side again, in a loop, so that calls are nested as deep as the count has bits at most."""
        code = self._open(function)
        builder, entry = code.builder, code.builder.block
        again = builder.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        state = [code.phi([(value, entry)]) for value in function.args]
        keys, spare, count, away, _ = state
        for vectors in self.counts:
            with builder.if_then(code.icompare("<=", count, vectors * self.lanes)):
                builder.call(self._block(vectors), [keys, code.select(away, spare, keys), count])
                builder.ret_void()
        sides = self._sides(code, *state)
        fewer = code.icompare("<", sides[0][2], sides[1][2])
        smaller, larger = ([code.select(fewer, *pair) for pair in zip(*s, strict=True)] for s in (sides, sides[::-1]))
        builder.call(function, smaller)
        for phi, value in zip(state, larger, strict=True):
            phi.add_incoming(value, builder.block)
        builder.branch(again)

    def _define_split(self) -> None:
        function = ll.Function(self.module, ll.FunctionType(ll.VoidType(), [POINTER] * 2), self.name + SPLIT)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        code, (part, other) = self._open(function), function.args
        state = load_state(code, part)
        nothing = (*state[:2], I64(0), *state[3:])
        store_state(code, other, nothing)
        with code.builder.if_then(code.icompare("<=", state[2], max(self.counts) * self.lanes)):
            code.builder.ret_void()
        # Keys that are all equal are in order now.
        store_state(code, part, nothing)
        for place, side in zip((part, other), self._sides(code, *state), strict=True):
            store_state(code, place, side)
        code.builder.ret_void()

    def _sides(self, code: Code, *state: ll.Value) -> list[State]:
        """Splits keys at a pivot, and returns what is left to be sorted; ends the function if they are all equal."""
        builder, (keys, spare, count, away, _) = code.builder, state
        kept = self._partition(code, keys, spare, count, away, self._pivot(code, *state))
        moved = builder.sub(count, kept)
        fewer = code.intrinsic("llvm.smin", kept, moved)
        bad = code.icompare("<", builder.mul(fewer, I64(LOPSIDED)), count)
        return [
            (keys, self._at(code, spare, moved), kept, away, bad),
            (spare, self._at(code, keys, kept), moved, builder.not_(away), bad),
        ]

    def _pivot(
        self, code: Code, keys: ll.Value, spare: ll.Value, count: ll.Value, away: ll.Value, middle: ll.Value
    ) -> ll.Value:
        """Returns a number that some of the keys are smaller than; ends the function if they are all equal."""
        (pivot,) = code.cond(
            middle,
            lambda: [self._middle(code, keys, spare, count, away)],
            lambda: [self._median(code, keys, count)],
        )
        return pivot

    def _median(self, code: Code, keys: ll.Value, count: ll.Value) -> ll.Value:
        """Returns the median of the lanes' medians, of vectors that are spread over the keys."""
        part = code.lshr(count, SAMPLE.bit_length() - 1)
        first = code.lshr(code.isub(part, self.lanes), 1)
        places = [code.iadd(first, code.builder.mul(part, I64(n))) for n in range(SAMPLE)]
        sample = [memory.load_vector(code, self._at(code, keys, place), self.vector) for place in places]
        for i, j in odd_even(0, SAMPLE):
            sample[i], sample[j] = ordered(code, sample[i], sample[j])
        lanes, half = tuple(range(self.lanes)), self.lanes // 2
        halves = [code.shuffle(sample[SAMPLE // 2], part) for part in (lanes[:half], lanes[half:])]
        return code.builder.extract_element(sorted_vectors(code, halves)[1], I32(0))

    def _middle(self, code: Code, keys: ll.Value, spare: ll.Value, count: ll.Value, away: ll.Value) -> ll.Value:
        """Returns the first number of the upper half of the range from the least to the largest key."""
        builder, names = code.builder, ("smin", "smax")
        last = builder.sub(count, I64(self.lanes))
        ends = memory.load_vector(code, self._at(code, keys, last), self.vector)
        with counted(code, 0, Int(code, last), self.lanes, [ends, ends], nonempty=True) as loop:
            vector = memory.load_vector(code, self._at(code, keys, i64(loop.index)), self.vector)
            loop.next = [code.intrinsic(f"llvm.{n}", old, vector) for n, old in zip(names, loop.carried, strict=True)]
        least, largest = (
            code.call(f"llvm.vector.reduce.{name}.{mangle(self.vector)}", self.type, found)
            for name, found in zip(names, loop.carried, strict=True)
        )
        with builder.if_then(code.icompare("==", least, largest)):
            self._copy(code, spare, keys, code.select(away, count, 0))
            builder.ret_void()
        half = code.lshr(code.isub(largest, least), 1)
        return code.iadd(code.iadd(least, half), 1)

    def _partition(
        self, code: Code, keys: ll.Value, spare: ll.Value, count: ll.Value, away: ll.Value, pivot: ll.Value
    ) -> ll.Value:
        """Keeps the keys below the pivot, or if `away` those that are not, as the first of `keys`, and moves the others
        to `spare`. Returns the number of keys that stay."""
        builder, pivots = code.builder, code.splat(pivot, self.lanes)
        below, above = code.select(away, spare, keys), code.select(away, keys, spare)
        rest = code.both(count, self.lanes - 1)
        whole = builder.sub(count, rest)
        several = builder.sub(whole, builder.urem(whole, I64(self.lanes * TOGETHER)))
        found = I64(0)
        for begin, end, vectors in ((0, Int(code, several), TOGETHER), (Int(code, several), Int(code, whole), 1)):
            with counted(code, begin, end, self.lanes * vectors, [found]) as loop:
                (found,) = loop.carried
                places = [code.iadd(i64(loop.index), n * self.lanes) for n in range(vectors)]
                loaded = [memory.load_vector(code, self._at(code, keys, place), self.vector) for place in places]
                for n, (place, vector) in enumerate(zip(places, loaded, strict=True)):
                    smaller = code.icompare("<", vector, pivots)
                    other = self._at(code, above, builder.sub(place, found))
                    # Neither store reaches beyond the end of this vector, up to which all keys have been read.
                    memory.store_vector(code, self._compressed(code, vector, smaller), self._at(code, below, found))
                    memory.store_vector(code, self._compressed(code, vector, builder.not_(smaller)), other)
                    if n * self.target.vector_bytes % (2 * LINE) == 0:  # about as many bytes fill a line on either side
                        self._request(code, self._at(code, below, found))
                        self._request(code, other)
                    found = builder.add(found, self._number(code, smaller))
                loop.next = [found]
            (found,) = loop.carried
        inside = self._leading(code, rest)
        vector = memory.load_vector(code, self._at(code, keys, whole), self.vector, inside)
        smaller = builder.and_(code.icompare("<", vector, pivots), inside)
        for mask, target, place in (
            (smaller, below, found),
            (builder.xor(smaller, inside), above, builder.sub(whole, found)),
        ):
            number = self._number(code, mask)
            compressed = self._compressed(code, vector, mask)
            memory.store_vector(code, compressed, self._at(code, target, place), self._leading(code, number))
        found = builder.add(found, self._number(code, smaller))
        return code.select(away, builder.sub(count, found), found)

    def _request(self, code: Code, place: ll.Value) -> None:
        ahead = code.builder.gep(place, [I64(AHEAD)], source_etype=I8)
        memory.prefetch(code, ahead, writes=True)

    def _copy(self, code: Code, target: ll.Value, source: ll.Value, count: ll.Value) -> None:
        rest = code.both(count, self.lanes - 1)
        whole = code.builder.sub(count, rest)
        with counted(code, 0, Int(code, whole), self.lanes) as loop:
            index = i64(loop.index)
            vector = memory.load_vector(code, self._at(code, source, index), self.vector)
            memory.store_vector(code, vector, self._at(code, target, index))
        inside = self._leading(code, rest)
        vector = memory.load_vector(code, self._at(code, source, whole), self.vector, inside)
        memory.store_vector(code, vector, self._at(code, target, whole), inside)

    # Masks

    def _bits(self, code: Code, mask: ll.Value) -> ll.Value:
        bits = code.builder.bitcast(mask, ll.IntType(self.lanes))
        return code.builder.zext(bits, I64)

    def _number(self, code: Code, mask: ll.Value) -> ll.Value:
        """Returns the number of lanes in a mask."""
        return code.intrinsic("llvm.ctpop", self._bits(code, mask))

    def _compressed(self, code: Code, vector: ll.Value, mask: ll.Value) -> ll.Value:
        """Returns the lanes of a mask as the first ones; the others are undefined."""
        if self.target.vector_bytes == 64:
            name = f"llvm.experimental.vector.compress.{mangle(self.vector)}"
            return code.call(name, self.vector, vector, mask, undefined(self.vector))
        place = code.builder.gep(self._orders(), [self._bits(code, mask)], source_etype=ll.VectorType(I8, 8))
        order = code.builder.zext(memory.load_vector(code, place, ll.VectorType(I8, 8)), ll.VectorType(I32, 8))
        words = code.builder.bitcast(vector, ll.VectorType(I32, 8))
        moved = code.call("llvm.x86.avx2.permd", words.type, words, order)
        return code.builder.bitcast(moved, self.vector)

    def _orders(self) -> ll.Value:
        """Returns the table of the words of a vector of 32 bytes that each mask selects, eight bytes for each."""
        name = f"{self.name}.orders"
        if name not in self.module.globals:
            words = range(8 // self.lanes)
            numbers = list[int]()
            for mask in range(1 << self.lanes):
                chosen = [lane * len(words) + word for lane in range(self.lanes) if mask >> lane & 1 for word in words]
                numbers += (chosen + [0] * 8)[:8]
            table = ll.GlobalVariable(self.module, ll.ArrayType(I8, len(numbers)), name)
            table.linkage, table.global_constant, table.align = "internal", True, 64
            table.initializer = ll.Constant(table.value_type, bytearray(numbers))
        return self.module.globals[name]
