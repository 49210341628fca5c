"""Atomic updates: by the atomic operations that a device has; for all others, by a compare-and-swap loop. Elements of
fewer than 32 bits are updated as a part of the word that contains them."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm import memory
from trivium.backends.llvm.apply import combine
from trivium.backends.llvm.code import I32, I64, Code
from trivium.backends.llvm.narrow import from_memory, memory_type, to_memory
from trivium.compiler.kernel.dtypes import FLOATS, SIGNED, bit_width

Change = Callable[[ll.Value], ll.Value]
"""Returns the new bits for the old ones."""

PLAIN = frozenset(("add", "and", "or", "xor"))
"""The operations on integers that have LLVM's name."""


def update(code: Code, operation: str, place: memory.Address, value: ll.Value) -> None:
    """Combines a value into the element at `place`."""
    pointer = code.builder.gep(place.pointer, [place.base], source_etype=memory_type(place.dtype))
    name = instruction(operation, place.dtype)
    if name is not None:
        code.builder.atomic_rmw(name, pointer, value, "monotonic")
        return
    bits = ll.IntType(8 * _bytes(place.dtype))

    def changed(old: ll.Value) -> ll.Value:
        raw = code.builder.bitcast(old, memory_type(place.dtype))
        new = combine(code, operation, place.dtype, from_memory(code, raw, place.dtype), value)
        return code.builder.bitcast(to_memory(code, new, place.dtype), bits)

    if bits.width >= 32:
        _exchange(code, pointer, bits, changed)
    else:
        _exchange_within(code, pointer, bits, changed)


def instruction(operation: str, dtype: str) -> str | None:
    """Returns LLVM's name of an atomic operation that devices have; None where it has to be computed."""
    if dtype in ("f32", "f64"):
        return "fadd" if operation == "add" else None
    if dtype in FLOATS or bit_width(dtype) < 32:
        return None
    if operation in ("maximum", "minimum"):
        return operation[:3] if dtype in SIGNED else f"u{operation[:3]}"
    return operation if operation in PLAIN else None


def _exchange(code: Code, pointer: ll.Value, bits: ll.IntType, changed: Change) -> None:
    """Stores `changed` of what is at `pointer`, again until nothing has come in between."""
    builder = code.builder
    before, again, done = builder.block, builder.append_basic_block("again"), builder.append_basic_block("done")
    builder.branch(again)
    builder.position_at_end(again)
    # A guess, which costs no more than a load.
    old = code.phi([(bits(0), before)])
    outcome = builder.cmpxchg(pointer, old, changed(old), "monotonic", "monotonic")
    found, stored = builder.extract_value(outcome, 0), builder.extract_value(outcome, 1)
    old.add_incoming(found, builder.block)
    builder.cbranch(stored, done, again)
    builder.position_at_end(done)


def _exchange_within(code: Code, pointer: ll.Value, bits: ll.IntType, changed: Change) -> None:
    """Does the same to a part of the word of 32 bits around `pointer`."""
    builder, address = code.builder, code.builder.ptrtoint(pointer, I64)
    word = builder.inttoptr(builder.and_(address, I64(-4)), pointer.type)
    shift = builder.shl(builder.trunc(builder.and_(address, I64(3)), I32), I32(3))
    outside = builder.not_(builder.shl(I32((1 << bits.width) - 1), shift))

    def around(old: ll.Value) -> ll.Value:
        new = builder.zext(changed(builder.trunc(builder.lshr(old, shift), bits)), I32)
        return builder.or_(builder.and_(old, outside), builder.shl(new, shift))

    _exchange(code, word, I32, around)


def _bytes(dtype: str) -> int:
    kind = memory_type(dtype)
    return kind.width // 8 if isinstance(kind, ll.IntType) else 8 if isinstance(kind, ll.DoubleType) else 4
