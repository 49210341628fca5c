"""Code that visits the parts of a split: of rows in tiles, of columns in panels, of these in units of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trivium.backends.cpu.contraction.tiling import Split
from trivium.backends.llvm.numbers import Number, maximum, minimum
from trivium.backends.llvm.vectors import Vectors


def first_of(split: Split, part: Number) -> Number:
    """Returns the first thing of a part."""
    if split.larger == split.count:
        return part * split.size
    return part * (split.size - 1) + minimum(part, split.larger)


def bounds(split: Split, part: Number) -> tuple[Number, Number]:
    """Returns the first thing of a part, and the first one after it."""
    if split.count == 1:
        return 0, split.extent
    return first_of(split, part), first_of(split, part + 1)


def parts(
    e: Vectors,
    split: Split,
    numbers: tuple[Number, Number],
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Number]]:
    """Emits code for the parts from the first of `numbers` up to, but not including, the second: once for each of their
    one or two sizes, with the size and the number of the part. `before` and `after` emit what precedes and follows the
    parts of a size."""
    begin, end = numbers
    before(split.size)
    with e.loop(begin, minimum(end, split.larger)) as loop:
        yield split.size, loop.index
    after()
    if split.larger < split.count:
        before(split.size - 1)
        with e.loop(maximum(begin, split.larger), end) as loop:
            yield split.size - 1, loop.index
        after()
