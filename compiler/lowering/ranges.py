"""What a branch knows about a loop variable: only some numbers of its range occur. Quotients and remainders that are
the same for all of these disappear from places in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trivium.compiler.lowering.index import Index, Remainder, Variable, variable


@dataclass(frozen=True)
class Part:
    """The numbers `first + step * number` of the range of the variable `whole`."""

    whole: Variable
    first: int
    step: int
    number: Variable

    @property
    def value(self) -> Index:
        """The variable in terms of `number`."""
        return variable(self.number) * self.step + self.first


def part_where(index: Index, low: int, high: int) -> Part | None:
    """Returns the part of a variable's range in which `index` is in [low, high]; None if that is all of it, or if the
    index is anything but a variable, or its remainder of which a single value is left, plus a number."""
    low, high = max(low, index.range[0]), min(high, index.range[1])
    if low > high or (low, high) == index.range:
        return None
    atom, first, step = (index - index.offset).sole, low - index.offset, 1
    last = high - index.offset
    if isinstance(atom, Remainder) and first == last:
        atom, step = atom.dividend.variable, atom.divisor
        last = atom.extent - 1 if atom else last
    return Part(atom, first, step, Variable((last - first) // step + 1)) if isinstance(atom, Variable) else None


def simplified(index: Index, known: Callable[[Any], Part | None]) -> Index:
    """Returns an index that is equal in the `known` parts of the ranges of variables. The `number` of a part remains
    only inside quotients and remainders."""
    parts = {symbol: part for symbol in index.symbols if (part := known(symbol))}
    found = index.replace(lambda symbol: parts[symbol].value if symbol in parts else None)
    for part in parts.values():
        times, rest = divmod(found.terms.get(part.number, 0), part.step)
        if times and not rest:
            found = found - part.value * times + variable(part.whole) * times
    return found
