"""Index arithmetic, symbolic: where an element lies, as an expression of loop variables. Expressions are sums of
variables, quotients and remainders with integer factors, kept in a normal form: a reshape of a reshape, or a quotient
put together with its remainder, falls away again. So equal places are equal expressions, and an access that is affine
shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel import Value


@dataclass(eq=False)
class Variable:
    """A loop variable in [0, extent)."""

    extent: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.extent - 1


@dataclass(eq=False)
class Known:
    """A run-time index in [0, high], the value of an instruction."""

    value: Value
    high: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.high


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


Atom = Variable | Known | Quotient | Remainder


class Index:
    """The sum of `factor * atom` over `terms`, plus `offset`. Immutable; compared by what it says."""

    __slots__ = ("_hash", "_range", "offset", "terms")

    def __init__(self, terms: Mapping[Atom, int], offset: int = 0):
        self.terms = {atom: factor for atom, factor in terms.items() if factor}
        self.offset = offset
        self._hash = hash((frozenset(self.terms.items()), offset))
        self._range: tuple[int, int] | None = None

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
    def variable(self) -> Variable | None:
        """The loop variable that this is, if it is just one."""
        if self.offset or len(self.terms) != 1:
            return None
        ((atom, factor),) = self.terms.items()
        return atom if factor == 1 and isinstance(atom, Variable) else None

    @property
    def is_affine(self) -> bool:
        """Whether it is a sum of multiples of loop variables and a constant."""
        return all(isinstance(atom, Variable) for atom in self.terms)

    def variables(self) -> set[Variable]:
        """The loop variables it depends on."""
        found: set[Variable] = set()
        for atom in self.terms:
            if isinstance(atom, Variable):
                found.add(atom)
            elif isinstance(atom, Quotient | Remainder):
                found |= atom.dividend.variables()
        return found

    def depends_on_values(self) -> bool:
        """Whether a run-time index is part of it."""
        inner = (atom.dividend for atom in self.terms if isinstance(atom, Quotient | Remainder))
        return any(isinstance(atom, Known) for atom in self.terms) or any(map(Index.depends_on_values, inner))

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
        common = math.gcd(divisor, *rest.terms.values())
        rest, divisor = rest._shrunk(common), divisor // common
        inner = rest._sole()
        if isinstance(inner, Quotient):
            rest, divisor = inner.dividend, inner.divisor * divisor
        return whole + Index({Quotient(rest, divisor): 1})

    def __mod__(self, divisor: int) -> Index:
        _, rest = self._split(divisor)
        low, high = rest.range
        if low >= 0 and high < divisor:
            return rest
        common = math.gcd(divisor, *rest.terms.values())
        left = rest.offset % common
        return Index({Remainder(rest._shrunk(common), divisor // common): common}, left)

    def _split(self, divisor: int) -> tuple[Index, Index]:
        """(q, r) with self == q * divisor + r. No factor of r is negative, and no atom is: so neither is r, and
        machines that divide towards zero divide it alike."""
        quotient = {a: f // divisor for a, f in self.terms.items()}
        rest = {a: f % divisor for a, f in self.terms.items()}
        return Index(quotient, self.offset // divisor), Index(rest, self.offset % divisor)

    def _shrunk(self, factor: int) -> Index:
        return Index({a: f // factor for a, f in self.terms.items()}, self.offset // factor)

    def _sole(self) -> Atom | None:
        if self.offset or len(self.terms) != 1:
            return None
        ((atom, factor),) = self.terms.items()
        return atom if factor == 1 else None

    def replace(self, places: Mapping[Variable, Index]) -> Index:
        """The expression with variables replaced."""
        total = Index({}, self.offset)
        for atom, factor in self.terms.items():
            if isinstance(atom, Variable):
                part = places.get(atom) or Index({atom: 1})
            elif isinstance(atom, Quotient):
                part = atom.dividend.replace(places) // atom.divisor
            elif isinstance(atom, Remainder):
                part = atom.dividend.replace(places) % atom.divisor
            else:
                part = Index({atom: 1})
            total += part * factor
        return total


Indices = tuple[Index, ...]


def _joined(terms: dict[Atom, int], offset: int) -> Index:
    """(e / n) * n + e mod n == e"""
    for atom, factor in list(terms.items()):
        if not isinstance(atom, Remainder) or terms.get(atom) != factor:
            continue
        quotient = atom.dividend // atom.divisor
        if not quotient.terms or any(terms.get(a) != f * factor * atom.divisor for a, f in quotient.terms.items()):
            continue
        rest = {a: f for a, f in terms.items() if a != atom and a not in quotient.terms}
        return Index(rest, offset - quotient.offset * factor * atom.divisor) + atom.dividend * factor
    return Index(terms, offset)


def constant(value: int) -> Index:
    return Index({}, value)


def variable(atom: Variable | Known) -> Index:
    return Index({atom: 1})


def fresh(shape: Sequence[int]) -> list[Variable]:
    """A variable for each dimension."""
    return [Variable(extent) for extent in shape]


def places(variables: Sequence[Variable]) -> Indices:
    """The variables as indices; those of extent 1 are 0."""
    return tuple(constant(0) if v.extent == 1 else variable(v) for v in variables)


def linearize(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """The row-major position of an element."""
    position = constant(0)
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def delinearize(position: Index, shape: Sequence[int]) -> Indices:
    """The indices of a row-major position."""
    indices: list[Index] = []
    for extent in reversed(shape[1:]):
        indices.append(position % extent if extent else constant(0))
        position = position // extent if extent else constant(0)
    return tuple(reversed([*indices, position])) if shape else ()
