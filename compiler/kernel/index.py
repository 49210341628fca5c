"""Index expressions: where an element is, in terms of loop indices and of numbers that are only known at run time. They
are sums of atoms with integer factors; an atom is a value of the kernel, or the quotient or remainder of an expression
and a positive number. They are kept in a normal form: a reshape of a reshape, or a quotient added to its remainder,
disappears. Therefore equal places are equal expressions, and affine accesses are recognizable as such.

The lowering writes expressions of its own loop variables (`compiler.lowering.index`); loads and stores hold expressions
of the kernel's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol


class Symbol(Protocol):
    """The basic term of an expression, besides quotients and remainders. Compared by identity."""

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and highest value."""
        ...


@dataclass(eq=False)
class Variable:
    """A loop variable in [0, extent), for expressions that are written before the loop exists: each loop over the
    variable has a value for it."""

    extent: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.extent - 1


@dataclass(frozen=True)
class Quotient:
    """floor(dividend / divisor)"""

    dividend: Index
    divisor: int

    @property
    def range(self) -> tuple[int, int]:
        low, high = self.dividend.range
        return low // self.divisor, high // self.divisor


@dataclass(frozen=True)
class Remainder:
    """dividend mod divisor, never negative."""

    dividend: Index
    divisor: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.divisor - 1

    @cached_property
    def quotient(self) -> Index:
        """floor(dividend / divisor)"""
        return self.dividend // self.divisor


Atom = Symbol | Quotient | Remainder


class Index:
    """The sum of `factor * atom` over `terms`, plus `offset`. Immutable; compared by its contents."""

    __slots__ = ("_hash", "_range", "_symbols", "offset", "terms")

    def __init__(self, terms: Mapping[Atom, int], offset: int = 0):
        self.terms = {atom: factor for atom, factor in terms.items() if factor}
        self.offset = offset
        self._hash = hash((frozenset(self.terms.items()), offset))
        self._range: tuple[int, int] | None = None
        self._symbols: tuple[Symbol, ...] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Index) and self.offset == other.offset and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and highest value."""
        if self._range is None:
            low = high = self.offset
            for atom, factor in self.terms.items():
                ends = [factor * end for end in atom.range]
                low, high = low + min(ends), high + max(ends)
            self._range = low, high
        return self._range

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def sole(self) -> Atom | None:
        """The atom that this expression consists of, if it is a single one, else None."""
        if self.offset or len(self.terms) != 1:
            return None
        ((atom, factor),) = self.terms.items()
        return atom if factor == 1 else None

    @property
    def variable(self) -> Variable | None:
        """The loop variable that this expression consists of, if it is a single one, else None."""
        atom = self.sole
        return atom if isinstance(atom, Variable) else None

    def variables(self) -> set[Variable]:
        """Returns the loop variables that it depends on."""
        return {symbol for symbol in self.symbols if isinstance(symbol, Variable)}

    def divisions(self) -> Iterator[Quotient | Remainder]:
        """Yields every quotient and remainder in it, inner ones before outer ones."""
        for atom in self.terms:
            if isinstance(atom, Quotient | Remainder):
                yield from atom.dividend.divisions()
                yield atom

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Every symbol that it depends on, once each."""
        if self._symbols is None:
            found: dict[Symbol, None] = {}
            for atom in self.terms:
                inner = atom.dividend.symbols if isinstance(atom, Quotient | Remainder) else (atom,)
                found.update(dict.fromkeys(inner))
            self._symbols = tuple(found)
        return self._symbols

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.offset + other) if other else self
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return _joined(terms, self.offset + other.offset)

    def __mul__(self, factor: int) -> Index:
        return self if factor == 1 else Index({a: f * factor for a, f in self.terms.items()}, self.offset * factor)

    def __sub__(self, other: Index | int) -> Index:
        return self + other * -1

    def __floordiv__(self, divisor: int) -> Index:
        whole, rest = self._split(divisor)
        low, high = rest.range
        if low >= 0 and high < divisor:
            return whole
        if parts := rest._parted(divisor):
            coarse, _, step = parts
            return whole + coarse // (divisor // step)
        common = math.gcd(divisor, *rest.terms.values())
        rest, divisor = rest._shrunk(common), divisor // common
        inner = rest.sole
        if isinstance(inner, Quotient):
            rest, divisor = inner.dividend, inner.divisor * divisor
        return whole + Index({Quotient(rest, divisor): 1})

    def __mod__(self, divisor: int) -> Index:
        _, rest = self._split(divisor)
        low, high = rest.range
        if low >= 0 and high < divisor:
            return rest
        if parts := rest._parted(divisor):
            coarse, fine, step = parts
            return coarse % (divisor // step) * step + fine
        common = math.gcd(divisor, *rest.terms.values())
        left = rest.offset % common
        return Index({Remainder(rest._shrunk(common), divisor // common): common}, left)

    def _split(self, divisor: int) -> tuple[Index, Index]:
        """Returns (q, r) with self == q * divisor + r. The factors of r are not negative, and neither are atoms, so r
        is not negative either, and division that rounds towards zero has the same result."""
        quotient = {a: f // divisor for a, f in self.terms.items()}
        rest = {a: f % divisor for a, f in self.terms.items()}
        return Index(quotient, self.offset // divisor), Index(rest, self.offset % divisor)

    def _parted(self, divisor: int) -> tuple[Index, Index, int] | None:
        """Returns (a, b, s) with self == a * s + b, where s divides `divisor` and b is at least 0 and less than s: of
        16 * i + j with j < 16, for example, divided by 64, (i, j, 16). None if there are none."""
        terms = sorted(self.terms.items(), key=lambda term: -term[1])
        for count in range(1, len(terms)):
            coarse = dict(terms[:count])
            step = math.gcd(divisor, *coarse.values())
            fine = Index(dict(terms[count:]), self.offset % step)
            low, high = fine.range
            if low >= 0 and high < step:
                return Index(coarse, self.offset - fine.offset)._shrunk(step), fine, step
        return None

    def _shrunk(self, factor: int) -> Index:
        return Index({a: f // factor for a, f in self.terms.items()}, self.offset // factor)

    def replace(self, replacement: Callable[[Symbol], Index | None]) -> Index:
        """Returns the expression with symbols replaced by the expressions that `replacement` returns for them."""
        if all(replacement(symbol) is None for symbol in self.symbols):
            return self
        terms, offset = dict[Atom, int](), self.offset
        for atom, factor in self.terms.items():
            if isinstance(atom, Quotient):
                part = atom.dividend.replace(replacement) // atom.divisor
            elif isinstance(atom, Remainder):
                part = atom.dividend.replace(replacement) % atom.divisor
            else:
                part = replacement(atom) or Index({atom: 1})
            offset += part.offset * factor
            for inner, times in part.terms.items():
                terms[inner] = terms.get(inner, 0) + times * factor
        return _joined(terms, offset)


Indices = tuple[Index, ...]


def _joined(terms: dict[Atom, int], offset: int) -> Index:
    """Returns the sum of `terms` and `offset`, simplified by (e / n) * n + e mod n == e."""
    for atom, factor in list(terms.items()):
        if not isinstance(atom, Remainder) or terms.get(atom) != factor:
            continue
        quotient = atom.quotient
        if not quotient.terms or any(terms.get(a) != f * factor * atom.divisor for a, f in quotient.terms.items()):
            continue
        rest = {a: f for a, f in terms.items() if a != atom and a not in quotient.terms}
        return Index(rest, offset - quotient.offset * factor * atom.divisor) + atom.dividend * factor
    return Index(terms, offset)


def constant(value: int) -> Index:
    return Index({}, value)


def variable(atom: Symbol) -> Index:
    return Index({atom: 1})


def expression(terms: Iterable[tuple[Symbol, int]], offset: int = 0) -> Index:
    """Returns sum(symbol * factor) + offset."""
    total = constant(offset)
    for symbol, factor in terms:
        total += Index({symbol: factor})
    return total
