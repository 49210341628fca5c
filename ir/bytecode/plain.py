"""The encoding of ops in plain MLIR bytecode, derived from their declarations. The attributes are those of the text: by
name in old files, in the order of their names in later ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from trivium.ir import ops  # noqa: F401  declares the ops
from trivium.ir.attributes import MAX_EXPANDED, Attribute, DenseArray, DenseElements
from trivium.ir.bytecode.casts import Cast
from trivium.ir.bytecode.encoding import Cursor
from trivium.ir.bytecode.tables import EntryReader
from trivium.ir.bytecode.versions import OTHER_DIALECTS, REVISIONS, Version
from trivium.ir.codecs import decode
from trivium.ir.core import Operation
from trivium.ir.declare import OPS, REQUIRED, Field, Op, group_sizes
from trivium.ir.errors import Error
from trivium.ir.types import I32, is_integer

_UNDECLARED = {"func.func": ("no_inline",), "func.call": ("arg_attrs", "no_inline", "res_attrs")}
"""Attributes that only MLIR declares; all may be missing. They are kept like undeclared attributes."""
_LATER = {
    "chlo.top_k": ("is_stable",),
    "func.call": ("arg_attrs", "res_attrs"),
    **{f"stablehlo.{name}": tuple(revision.added) for name, revision in REVISIONS.items() if revision.added},
}
"""Attributes that older files do not have. Plain bytecode has no versions: the number of attributes decides."""
_FUNCTIONS = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")
_OF_XLA = {f"mhlo.{name}": f"chlo.{name}" for name in _FUNCTIONS}
"""Functions of XLA's own dialect, which XLA leaves in the files that it writes as StableHLO."""
_SEGMENTS = {"operandSegmentSizes": "operands", "resultSegmentSizes": "results"}
_SPARSE_SEGMENTS = 6
"""The version of bytecode that packs the sizes of groups."""


@dataclass(frozen=True)
class PlainForm:
    """An op class in plain bytecode. `order` has its attributes, and whether each may be missing."""

    cls: type[Op]
    order: tuple[tuple[str, bool], ...]

    def lowered(self, op: Operation, target: Version, require: Callable[[Version, str], None]) -> tuple[str, dict]:
        """Returns the op's name and its attributes in an artifact of version `target`, in which ops of other dialects
        are unchanged."""
        if self.cls is not Cast:
            require(OTHER_DIALECTS, "")
        fields = [field for field in self.cls.ATTRIBUTES if op.attributes.get(field.name) is not None]
        return self.cls.NAME, {field.name: field.codec.encode(op.attributes[field.name]) for field in fields}

    def slots(self, attributes: Mapping[str, Attribute]) -> list[tuple[str, bool]]:
        """Returns the attributes in the order of a file, and whether each may be missing."""
        return sorted(self.order)

    def names(self, number: int) -> tuple[str, ...]:
        """Returns the names of the declared attributes and of the sizes of groups."""
        return (*(field.name for field in self.cls.ATTRIBUTES), *self._groups())

    def properties(self, reader: EntryReader, number: int, bytecode: int) -> dict[str, Attribute]:
        """Reads the attributes that are stored as properties."""
        packs = bytecode >= _SPARSE_SEGMENTS
        found: dict[str, Attribute] = {}
        for name, optional in self._order(reader, () if packs else self._groups()):
            value = reader.optional_attribute() if optional else reader.attribute()
            if value is not None:
                found[name] = value
        if packs:
            found |= {name: _sparse(reader, len(fields)) for name, fields in self._groups().items()}
        return found

    def _order(self, reader: EntryReader, groups: Iterable[str]) -> list[tuple[str, bool]]:
        """Returns the attributes in the order of a file. Later additions are present if the file has a number for each
        attribute."""
        order = sorted([*self.order, *((name, False) for name in groups)])
        later = _LATER.get(self.cls.NAME, ())
        return [entry for entry in order if entry[0] not in later] if later and _left(reader) < len(order) else order

    def decode(self, attributes: Mapping[str, Attribute], number: int) -> dict[str, Any]:
        """Returns the declared attributes. Raises `VerificationError`."""
        return {
            field.name: decode(field.codec, self.cls.NAME, field.name, attributes[field.name])
            for field in self.cls.ATTRIBUTES
            if field.name in attributes
        }

    def segments(self, attributes: Mapping[str, Attribute]) -> dict[str, tuple[int, ...]] | None:
        """Returns the sizes of groups that do not follow from the counts."""
        found = {}
        for name, fields in self._groups().items():
            sizes = tuple(_numbers(attributes.get(name)))
            if sizes and (len(sizes) != len(fields) or any(size < 0 for size in sizes)):
                raise Error(f"{self.cls.NAME} has groups of {list(sizes)}, expected {len(fields)} sizes")
            if sizes and sizes != group_sizes(fields, sum(sizes)):
                found[_SEGMENTS[name]] = sizes
        return found or None

    def _groups(self) -> dict[str, tuple[Field, ...]]:
        if not self.cls.STATES_GROUPS:
            return {}
        return {"operandSegmentSizes": self.cls.OPERANDS, "resultSegmentSizes": self.cls.RESULTS}


def _sparse(reader: EntryReader, count: int) -> DenseArray:
    """Reads a short list of numbers, many of which are zero: either all up to the last nonzero one, or only the nonzero
    ones, each packed with its index."""
    flagged = reader.varint()
    sizes = [0] * count
    width = reader.varint() if flagged & 1 and flagged > 1 else 0
    for position in range(min(flagged >> 1, count)):
        value = reader.varint()
        index = value & ((1 << width) - 1) if flagged & 1 else position
        if index >= count:
            raise reader.error(f"a list of {count} sizes has one at {index}")
        sizes[index] = value >> width
    return DenseArray(I32, tuple(sizes))


def _left(reader: EntryReader) -> int:
    """Returns how many integers are left."""
    ahead, count = Cursor(reader.data[reader.pos :]), 0
    while ahead.left:
        ahead.varint()
        count += 1
    return count


def _numbers(value: Attribute | None) -> list[int]:
    if isinstance(value, DenseElements) and value.array.dtype.kind == "i":
        return value.array.reshape(-1)[:MAX_EXPANDED].tolist()
    return list(map(int, value.values)) if isinstance(value, DenseArray) and is_integer(value.element_type) else []


@cache
def plain_form(name: str) -> PlainForm | None:
    """Returns the form of an op by its name in programs, or `None` if there is none."""
    cls = Cast if name == Cast.NAME else OPS.get(_OF_XLA.get(name, name))
    if cls is None:
        return None
    order = {field.name: field.default is not REQUIRED for field in cls.ATTRIBUTES}
    order |= dict.fromkeys(_UNDECLARED.get(name, ()), True)
    return PlainForm(cls, tuple(order.items()))
