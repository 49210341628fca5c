"""Where the loops of kernels end: iterations that only write elements which a program for several sizes does not need
(`compiler.ends`) do not run."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from trivium.compiler.ends import Digit, Ends, reshaped
from trivium.compiler.kernel import Buffer, Kernel, Loop, walk
from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.dtypes import BOOL, FLOATS, INDEX
from trivium.compiler.kernel.index import Index, Quotient, Remainder
from trivium.compiler.kernel.structure import End, Load, Register, Store
from trivium.compiler.lowering.launches import Argument
from trivium.ir.core import Value

SHORTEST = 32
"""The number of elements from which on it pays off to ask whether they are needed."""

Found = Mapping[tuple[int, Digit], Value | int]
"""The ends of a loop's dimensions."""


def end(
    kernel: Kernel, arguments: Sequence[Argument], needed: Mapping[Value, Ends], read: Container[Argument] = ()
) -> tuple[Argument, ...]:
    """Lets the loop of a kernel end where what it writes does. Returns the arguments of its launch. What later launches
    for the same op `read` is written as a whole: what an element needs of these steps on the way to it is not known."""
    bound = dict(zip(kernel.params, arguments, strict=True))
    loop = next((i for i in kernel.body.instructions if isinstance(i, Loop) and i.kind == "parallel"), None)
    if loop is None:
        return tuple(arguments)
    writes = [a for a in accesses(kernel.body) if not isinstance(a, Load) and a.buffer.mode != "scratch"]
    ends = []
    alone = {buffer: argument for buffer, argument in bound.items() if argument not in read}
    for (dimension, digit), extent in _common([_of_write(loop, write, alone, needed) for write in writes]).items():
        if isinstance(extent, Value) and _work(loop, dimension) >= SHORTEST:
            buffer = next((b for b, argument in bound.items() if argument is extent), None)
            if buffer is None:
                buffer = Buffer(f"extent{len(bound)}", INDEX, (), "in")
                bound[buffer] = extent
            ends.append(End(dimension, digit.step, digit.count, buffer))
    kernel.params, loop.ends = list(bound), tuple(ends)
    return tuple(bound.values())


def _of_write(loop: Loop, write: object, bound: Mapping[Buffer, Argument], needed: Mapping[Value, Ends]) -> Found:
    """Returns the ends of the iterations that store elements which are needed.

    Integers are stored for all places: other kernels may know that they are in bounds of an array, and not check."""
    if not isinstance(write, Store) or write.buffer.dtype not in FLOATS | {BOOL}:
        return {}
    value = bound.get(write.buffer)
    if not isinstance(value, Value) or value not in needed:
        return {}
    shape, given = write.buffer.shape, value.type.static_shape
    if math.prod(shape) == value.type.size:
        ends = reshaped(needed[value], given, shape)
    elif shape[:-1] == given:  # the parts of complex numbers are another dimension
        ends = (*needed[value], {})
    else:
        return {}
    found = {}
    for index, digits in zip(write.indices, ends, strict=True):
        for digit, extent in digits.items():
            place = _in_loop(loop, index, digit)
            if place is not None:
                found[place] = extent
    return found


def _in_loop(loop: Loop, index: Index, digit: Digit) -> tuple[int, Digit] | None:
    """Returns the dimension of a loop from whose index a digit of an index expression follows, and the digit of it."""
    terms = sorted(index.terms.items(), key=lambda term: term[1])
    lower = index.offset
    for position, (atom, factor) in enumerate(terms):
        higher = [f for _, f in terms[position + 1 :]]
        period = digit.step * digit.count
        if digit.step % factor == 0 and 0 <= lower < factor and all(f % period == 0 for f in higher):
            found = _in_atom(loop, atom, Digit(digit.step // factor, digit.count))
            if found is not None:
                return found
        low, high = atom.range if not isinstance(atom, Register) else (0, _extent(loop, atom) - 1)
        if low < 0 or factor < 0 or lower < 0:
            return None
        lower += high * factor
    return None


def _extent(loop: Loop, index: Register) -> int:
    """Returns the number of iterations that an index of a loop, or of a loop inside it, counts. Nothing is known of
    other values: for these, it is larger than any array."""
    for each in (loop, *(i for i in walk(loop.body) if isinstance(i, Loop))):
        if index in each.indices:
            extent = each.extents[each.indices.index(index)]
            return extent if isinstance(extent, int) else 1 << 62
    return 1 << 62


def _in_atom(loop: Loop, atom: object, digit: Digit) -> tuple[int, Digit] | None:
    if isinstance(atom, Quotient) and (inner := atom.dividend.sole) is not None:
        return _in_atom(loop, inner, Digit(digit.step * atom.divisor, digit.count))
    if isinstance(atom, Remainder) and (inner := atom.dividend.sole) is not None:
        within = atom.divisor % (digit.step * digit.count) == 0
        return _in_atom(loop, inner, digit) if within else None
    if isinstance(atom, Register) and atom in loop.indices:
        dimension = loop.indices.index(atom)
        extent = loop.extents[dimension]
        if isinstance(extent, int) and extent % (digit.step * digit.count) == 0:
            return dimension, digit
    return None


def _common(found: Sequence[Found]) -> Found:
    """Returns the ends that all writes have."""
    first, *rest = found or [{}]
    return {key: extent for key, extent in first.items() if all(other.get(key) is extent for other in rest)}


def _work(loop: Loop, dimension: int) -> int:
    """Returns how many elements an iteration of a dimension computes, roughly."""
    inner = [loop.extents[dimension + 1 :], *(i.extents for i in walk(loop.body) if isinstance(i, Loop))]
    return math.prod(max(1, e) for extents in inner for e in extents if isinstance(e, int))
