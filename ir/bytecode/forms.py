"""The encoding of ops in an artifact, derived from their declarations. Operands, regions and results are the same;
attributes differ in three ways: a file has no defaults, most structs are stored field by field, and names are
versioned. Everything that does not follow from that is in the small tables here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_type_hints

from trivium.ir import ops  # noqa: F401  declares the ops
from trivium.ir.attributes import STRUCTS, UNIT, Attribute, Dictionary, Integer, Struct, SymbolRef, Unit
from trivium.ir.bytecode.casts import Cast, is_foreign
from trivium.ir.bytecode.plain import PlainForm, plain_form
from trivium.ir.bytecode.tables import EntryReader
from trivium.ir.bytecode.versions import FIRST, INTRODUCED, NO_PAIRS, REVISIONS, USES, Revision, Version
from trivium.ir.bytecode.vhlo import VHLO, ApiVersion
from trivium.ir.codecs import Codec, Pairs, codec_of, decode
from trivium.ir.core import Operation
from trivium.ir.declare import OPS, AttributeField, Op
from trivium.ir.errors import Error
from trivium.ir.func import FuncReturn, Module
from trivium.ir.ops.control import CustomCallApiVersion
from trivium.ir.ops.conversion import ComparisonType
from trivium.ir.ops.convolution import ConvDimensionNumbers
from trivium.ir.ops.products import Precision
from trivium.ir.ops.transcendental import ResultAccuracy
from trivium.ir.terminators import Return as RegionReturn
from trivium.ir.types import I64, NONE

Values = Mapping[str, object]
"""The attributes of an op as Python values, as its class declares them."""

Attributes = Mapping[str, Attribute]
"""Attributes in the form of files."""

# Defaults that the declarations leave out: the value, or a function that computes it from the op's other values.


def _spatial(values: Values) -> int:
    numbers, window = values.get("dimension_numbers"), values.get("window_dimensions", ())
    if isinstance(numbers, ConvDimensionNumbers):
        return len(numbers.input_spatial_dimensions)
    assert isinstance(window, tuple), window
    return len(window)


def _no_config(values: Values) -> Dictionary | str:
    return Dictionary() if values.get("api_version") == CustomCallApiVersion.API_VERSION_TYPED_FFI else ""


def _ones(values: Values) -> tuple[int, ...]:
    return (1,) * _spatial(values)


_DEFAULTS: dict[str, object] = {
    **dict.fromkeys(("window_strides", "base_dilations", "window_dilations", "lhs_dilation", "rhs_dilation"), _ones),
    **dict.fromkeys(("operand_layouts", "result_layouts", "result_tilings", "arg_attrs", "res_attrs", "layout"), ()),
    **dict.fromkeys(("known_expanding_dimensions", "known_nonexpanding_dimensions", "source_target_pairs"), ()),
    **dict.fromkeys(("sym_visibility", "infeed_config", "outfeed_config"), ""),
    "backend_config": _no_config,
    "compare_type": ComparisonType.NOTYPE,
    "padding": lambda values: ((0, 0),) * _spatial(values),
    "precision_config": (Precision.DEFAULT, Precision.DEFAULT),
    "result_accuracy": ResultAccuracy(),
    "window_reversal": lambda values: (False,) * _spatial(values),
}
_TOGETHER = {"operand_layouts": "result_layouts", "result_layouts": "operand_layouts"}
"""Attributes that are either both present or both absent."""

_RENAMED = {"handle": "channel_id", "type": "channel_type"}
"""The names of a channel's fields in files."""
_ABSENT = {"channel_handle": Integer(0, I64)}
"""The value of each field of an absent struct; for other structs it is the type `none`."""

_TAKEN_APART = ("channel_handle", "conv", "dot", "dot_algorithm", "gather", "scatter")
"""The structs that VHLO stores field by field."""
_STRUCTS = {kind.__name__: kind for kind in (STRUCTS[f"stablehlo.{name}"] for name in _TAKEN_APART)}

_NO_VERSION = Integer(0, I64)
"""The value that MLIR's writer uses for a missing version of a composite; its type differs from that of a version."""

_ENCODE: dict[str, Callable[[Any], ApiVersion]] = {"api_version": lambda value: ApiVersion(int(value))}


def _is_flag(field: AttributeField) -> bool:
    """Whether only the presence of an attribute has a meaning; such attributes are booleans in files."""
    return field.codec.what == Unit.__name__


def _symbols(field: AttributeField) -> Callable[[Attribute], Attribute]:
    """Returns a function that turns VHLO's strings into symbols; the declaration says which attributes have symbols."""
    what = field.codec.what
    if what == SymbolRef.__name__:
        return lambda value: SymbolRef(value) if isinstance(value, str) else value
    if what == f"array of {SymbolRef.__name__}":
        return _symbol_array
    return _same


def _symbol_array(value: Attribute) -> Attribute:
    if not isinstance(value, tuple):
        return value
    return tuple(SymbolRef(item) if isinstance(item, str) else item for item in value)


@dataclass(frozen=True)
class Splice:
    """A struct whose fields are separate attributes in files. `parts` maps their names in files to the names of the
    fields and their codecs. `absent` is the value of each of them if there is no struct; `unstated` are the fields that
    files do not have."""

    kind: type[Struct]
    parts: Mapping[str, tuple[str, Codec]]
    absent: Attribute
    unstated: Mapping[str, object]

    def encode(self, value: Struct | None) -> dict[str, Attribute]:
        if value is None:
            return dict.fromkeys(self.parts, self.absent)
        return {name: codec.encode(getattr(value, part)) for name, (part, codec) in self.parts.items()}

    def decode(self, op: str, attributes: Attributes, optional: bool) -> Struct | None:
        if optional and all(attributes[name] == self.absent for name in self.parts):
            return None
        given = {part: decode(codec, op, name, attributes[name]) for name, (part, codec) in self.parts.items()}
        return self.kind(**{**self.unstated, **given})


@dataclass(frozen=True)
class Form:
    """An op class in artifacts; `spliced` are the attributes that are stored as several there."""

    cls: type[Op]
    spliced: Mapping[str, Splice]
    revision: Revision | None

    @property
    def name(self) -> str:
        return self.cls.short_name()

    @property
    def introduced(self) -> Version:
        return INTRODUCED.get(self.name, FIRST)

    @property
    def optional(self) -> bool:
        """Whether attributes may be missing: only those of modules, which are not VHLO ops."""
        return self.cls is Module

    def slots(self, attributes: Attributes) -> list[tuple[str, bool]]:
        """Returns the attributes in the order of a file, and whether each may be missing."""
        names = self.names(1) if self.optional else sorted(attributes)
        return [(name, self.optional) for name in names]

    def names(self, number: int) -> tuple[str, ...]:
        """Returns the attributes of a revision in the order of a file, which is sorted."""
        found = {name for field in self.cls.ATTRIBUTES for name in self._names_of(field)}
        if self.revision is not None and number == 1:
            found = found - self.revision.added.keys() | self.revision.removed.keys()
        return tuple(sorted(found))

    def _names_of(self, field: AttributeField) -> tuple[str, ...]:
        return tuple(self.spliced[field.name].parts) if field.name in self.spliced else (field.name,)

    # Writing

    def encode(self, op: Operation) -> dict[str, Any]:
        """Returns the op's declared attributes in the form of its newest revision."""
        attributes: dict[str, Attribute | ApiVersion] = {}
        for field in self.cls.ATTRIBUTES:
            value = op.attributes.get(field.name)
            if field.name in self.spliced:
                attributes.update(self.spliced[field.name].encode(value))
            elif _is_flag(field):
                attributes[field.name] = value is not None
            else:
                value = self._default(field, op.attributes) if value is None else value
                if value is not None:
                    attributes[field.name] = _encoded(field, value)
        return attributes

    def _default(self, field: AttributeField, values: Values) -> object:
        if self.optional:
            return None
        if field.name not in _DEFAULTS:
            raise Error(f"{self.cls.NAME} has no attribute {field.name}, which files require")
        default = _DEFAULTS[field.name]
        return default(values) if callable(default) else default

    def lowered(self, op: Operation, target: Version, require: Callable[[Version, str], None]) -> tuple[str, dict]:
        """Returns the op's name and its attributes in files of version `target`. Calls `require` for anything that such
        files cannot have, with the version that can."""
        attributes = self.encode(op)
        if self.optional:
            return self.cls.NAME, attributes
        require(self.introduced, "")
        for since, what, is_used in USES.get(self.name, ()):
            if target < since and is_used(op, attributes):
                require(since, what)
        if self.revision is None:
            return f"vhlo.{self.name}_v1", attributes
        if target >= self.revision.since:
            return f"vhlo.{self.name}_v2", attributes
        self._check_older(op, attributes, require)
        for name in self.revision.added:
            del attributes[name]
        for name, make in self.revision.removed.items():
            attributes[name] = make(attributes)
        return f"vhlo.{self.name}_v1", attributes

    def _check_older(self, op: Operation, attributes: Attributes, require: Callable[[Version, str], None]) -> None:
        assert self.revision is not None
        for name, value in self.revision.added.items():
            if VHLO.canonical(attributes[name]) != value:
                require(self.revision.since, name)
        if self.revision.demands is not None and not self.revision.demands[1](op):
            require(self.revision.since, f"other than {self.revision.demands[0]}")

    # Reading

    def properties(self, reader: EntryReader, number: int, bytecode: int) -> dict[str, Attribute]:
        """Reads the attributes that are stored as properties."""
        read = reader.optional_attribute if self.optional else reader.attribute
        found = {name: read() for name in self.names(number)}
        return {name: value for name, value in found.items() if value is not None}

    def segments(self, attributes: Attributes) -> None:
        """The sizes of groups always follow from the counts."""

    def decode(self, attributes: dict[str, Attribute], number: int) -> dict[str, object]:
        """Returns the declared attributes, from those of revision `number` in a file. Raises `VerificationError`."""
        if self.revision is not None and number == 1:
            attributes = {**self.revision.added, **attributes}
        values: dict[str, object] = {}
        for field in self.cls.ATTRIBUTES:
            missing = [name for name in self._names_of(field) if name not in attributes]
            if missing and self.optional:
                continue
            if missing:
                raise Error(f"{self.cls.NAME} lacks the attribute {missing[0]}")
            value = self._decoded(field, attributes)
            if value is not None:
                values[field.name] = value
        return self._without_defaults(values)

    def _decoded(self, field: AttributeField, attributes: Attributes) -> object:
        if field.name in self.spliced:
            return self.spliced[field.name].decode(self.cls.NAME, attributes, field.default is None)
        value = attributes[field.name]
        if _is_flag(field):
            return UNIT if value is True else None
        value = _symbols(field)(value)
        if field.name == "version" and value == _NO_VERSION:
            return 0
        return decode(field.codec, self.cls.NAME, field.name, value)

    def _without_defaults(self, values: dict[str, object]) -> dict[str, object]:
        """Removes attributes with default values: artifacts cannot distinguish them from absent ones, and MLIR reads
        them as absent."""
        if self.optional:
            return values
        given = {
            field.name
            for field in self.cls.ATTRIBUTES
            if field.default is not None
            or field.name not in values
            or field.name not in _DEFAULTS
            or values[field.name] != self._default(field, values)
        }
        given |= {_TOGETHER[name] for name in given & _TOGETHER.keys()}
        return {name: value for name, value in values.items() if name in given}


def _same(value: Attribute) -> Attribute:
    return value


def _encoded(field: AttributeField, value: object) -> Attribute | ApiVersion:
    if field.name in _ENCODE:
        return _ENCODE[field.name](value)
    if field.name == "version" and value == 0:
        return _NO_VERSION
    if field.name == "source_target_pairs" and not value:
        return NO_PAIRS if field.default is None else codec_of(Pairs).encode(())
    return field.codec.encode(value)


@cache
def form_of(cls: type[Op]) -> Form:
    """Returns the form of an op class."""
    spliced = {}
    for field in cls.ATTRIBUTES:
        kind = _STRUCTS.get(field.codec.what)
        if kind is not None:
            hints = get_type_hints(kind)
            parts = {
                _RENAMED.get(part.name, part.name): (part.name, codec_of(hints[part.name])) for part in fields(kind)
            }
            # Only required channels have a type.
            dropped = parts.pop("channel_type", None) if field.default is None else None
            unstated = {} if dropped is None else {"type": 0}
            spliced[field.name] = Splice(kind, parts, _ABSENT.get(field.name, NONE), unstated)
    revision = REVISIONS.get(cls.short_name()) if cls.NAME.startswith("stablehlo.") else None
    return Form(cls, spliced, revision)


def form_in_artifacts(op: Operation) -> Form | PlainForm | None:
    """Returns the form of an op in artifacts, or `None` if they cannot have it."""
    if op.NAME.startswith(("stablehlo.", "func.")) or isinstance(op, Module):
        return form_of(type(op))
    return plain_form(op.NAME) if is_foreign(op) or isinstance(op, Cast) else None


def form_named(name: str) -> tuple[Form | PlainForm, int] | None:
    """Returns the form and the revision of an op that a file names, or `None` if there is none. Files have one name for
    the returns of functions and of regions; the result is the form of the latter."""
    if name == Module.NAME:
        return form_of(Module), 1
    dialect, _, versioned = name.partition(".")
    if dialect != "vhlo":
        plain = plain_form(name)
        return None if plain is None else (plain, 1)
    base, _, number = versioned.rpartition("_v")
    if number not in ("1", "2"):
        return None
    cls = OPS.get(f"stablehlo.{base}") or OPS.get(f"func.{base}")
    if cls is None or int(number) > 1 + (base in REVISIONS):
        return None
    return form_of(cls), int(number)


def return_class(parent: Operation | None) -> type[Op]:
    """Returns the class of a return in a region of `parent`."""
    return FuncReturn if parent is not None and parent.NAME == "func.func" else RegionReturn
