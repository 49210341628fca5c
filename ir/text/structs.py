"""Attributes of StableHLO with fields, `#stablehlo.gather<offset_dims = [0], ...>`, and the two with a special syntax:
the dimension numbers of a convolution and the bounds of a tensor type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from trivium.ir.attributes import ENUMERATIONS, STRUCTS, Attribute, Enumeration, Struct, is_attribute
from trivium.ir.codecs import Codec, codec_of, coerce
from trivium.ir.errors import VerificationError
from trivium.ir.mesh import Mesh, MeshAxis, SubAxis
from trivium.ir.numerals import float_of, float_text
from trivium.ir.text.elements import ElementsReader
from trivium.ir.text.lexer import INTEGER, NUMBER, WORD
from trivium.ir.types import F64, Bounds, Type

_CONV = "stablehlo.conv"
# The parts of a convolution's dimension numbers: the prefix of the fields, and the letter of each dimension that is not
# spatial.
_CONV_PARTS = (
    ("input", {"b": "batch", "f": "feature"}),
    ("kernel", {"i": "input_feature", "o": "output_feature"}),
    ("output", {"b": "batch", "f": "feature"}),
)


# Writing


def enumeration_text(value: Enumeration) -> str:
    """`#stablehlo<precision HIGH>`"""
    dialect, _, mnemonic = value.MNEMONIC.partition(".")
    if mnemonic == "result_accuracy_mode":
        return f"#{dialect}.{mnemonic}<{value}>"
    return f"#{dialect}<{mnemonic} {value}>"


def struct_text(value: Struct, attribute: Callable[[Attribute], str]) -> str:
    """Writes `#stablehlo.dot<...>`; `attribute` writes attributes inside."""
    return f"#{value.MNEMONIC}{struct_body(value, attribute)}"


def struct_body(value: Struct, attribute: Callable[[Attribute], str] = str) -> str:
    """Writes what follows the name, including the angle brackets."""
    if value.MNEMONIC == _CONV and is_plain_convolution(value):
        return f"<{convolution_text(value)}>"
    if isinstance(value, SubAxis):
        return f"({value.pre_size}){value.size}"
    equals = "=" if isinstance(value, Mesh) else " = "
    entries = []
    for field in fields(value):
        entry = getattr(value, field.name)
        # MLIR's parsers accept missing fields only if they are zero, and never for an enumeration.
        if field.default is MISSING or entry != field.default or isinstance(entry, Enumeration):
            entries.append(f"{field.name}{equals}{_field_text(entry, attribute)}")
    return f"<{'raw ' if value.MNEMONIC == _CONV else ''}{', '.join(entries)}>"


def _field_text(value: Any, attribute: Callable[[Attribute], str]) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(_field_text(item, attribute) for item in value)}]"
        case SubAxis() | MeshAxis():
            return struct_body(value, attribute)
        case Enumeration():
            return enumeration_text(value)
        case float():
            return float_text(value, F64)
        case int() | Type():
            return str(value)
    return attribute(value)


def convolution_text(value: Struct) -> str:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`"""
    parts = []
    for part, letters in _CONV_PARTS:
        places = {getattr(value, f"{part}_{name}_dimension"): letter for letter, name in letters.items()}
        places |= {place: str(index) for index, place in enumerate(getattr(value, f"{part}_spatial_dimensions"))}
        parts.append(f"[{', '.join(places[place] for place in sorted(places))}]")
    return f"{parts[0]}x{parts[1]}->{parts[2]}"


def is_plain_convolution(value: Struct) -> bool:
    """Whether lists of letters and numbers can express the dimension numbers."""
    for part, letters in _CONV_PARTS:
        places = [getattr(value, f"{part}_{name}_dimension") for name in letters.values()]
        places += getattr(value, f"{part}_spatial_dimensions")
        if sorted(places) != list(range(len(places))):
            return False
    return True


# Reading


def read_enumeration(reader: ElementsReader, dialect: str) -> Enumeration | None:
    """Reads `<precision HIGH>` after `#stablehlo`. Returns `None`, with nothing read, if the enumeration is not
    declared."""
    start = reader.pos
    reader.expect("<")
    mnemonic = reader.try_take(WORD) or ""
    kind = ENUMERATIONS.get(f"{dialect}.{mnemonic}")
    if kind is None:
        reader.pos = start
        return None
    value = read_member(reader, kind)
    reader.expect(">")
    return value


def read_member(reader: ElementsReader, kind: type[Enumeration]) -> Enumeration:
    """Reads the word of one member."""
    pos = reader.pos
    word = reader.take(WORD, "a word")
    try:
        return kind(word)
    except ValueError:
        members = ", ".join(str(member) for member in kind)
        raise reader.error(f"'{word}' is not a {kind.__name__}, expected one of {members}", pos) from None


def read_struct(reader: ElementsReader, mnemonic: str) -> Struct | Enumeration | Bounds | None:
    """Reads the body after `#stablehlo.mnemonic`. Returns `None`, with nothing read, for an undeclared attribute."""
    if mnemonic == "stablehlo.bounds":
        return Bounds(tuple(reader.listed(lambda: _bound(reader), "<", ">")))
    if mnemonic == "stablehlo.type_extensions":
        return _read_type_extensions(reader)
    if mnemonic in ENUMERATIONS:
        reader.expect("<")
        value = read_member(reader, ENUMERATIONS[mnemonic])
        reader.expect(">")
        return value
    return read_body(reader, STRUCTS[mnemonic]) if mnemonic in STRUCTS else None


def read_body(reader: ElementsReader, kind: type[Struct]) -> Struct:
    """Reads angle brackets with fields in any order, or with the letters of a convolution."""
    reader.expect("<")
    if kind.MNEMONIC == _CONV and not reader.accept_word("raw"):
        value = read_convolution(reader)
        reader.expect(">")
        return value
    return _read_fields(reader, kind)


def _read_fields(reader: ElementsReader, kind: type[Struct]) -> Struct:
    start = reader.pos
    given: dict[str, object] = {}
    hints = _hints(kind)

    def entry() -> None:
        pos = reader.pos
        name = reader.take(WORD, f"one of {', '.join(hints)}")
        if name not in hints or name in given:
            again = "is given twice" if name in given else f"is not a field, expected one of {', '.join(hints)}"
            raise reader.error(f"#{kind.MNEMONIC}: {name} {again}", pos)
        reader.expect("=")
        given[name] = _read_field(reader, hints[name])

    while not reader.accept(">"):
        entry()
        if not reader.accept(","):
            reader.expect(">")
            break
    return _made(reader, kind, given, start)


def _made(reader: ElementsReader, kind: type[Struct], given: dict[str, object], start: int) -> Struct:
    try:
        codecs = _field_codecs(kind)
        return kind(**{name: coerce(codecs[name], f"#{kind.MNEMONIC}", name, value) for name, value in given.items()})
    except VerificationError as error:
        raise reader.error(error.message, start) from None
    except TypeError:
        missing = [field.name for field in fields(kind) if field.default is MISSING and field.name not in given]
        raise reader.error(f"#{kind.MNEMONIC} lacks {', '.join(missing)}", start) from None


@cache
def _hints(kind: type[Struct]) -> dict[str, object]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _field_codecs(kind: type[Struct]) -> dict[str, Codec]:
    return {name: codec_of(hint) for name, hint in _hints(kind).items()}


def _read_field(reader: ElementsReader, hint: object) -> object:
    if hint == tuple[MeshAxis, ...]:
        return tuple(reader.listed(lambda: _read_axis(reader), "[", "]"))
    if hint == SubAxis | None:
        return _read_sub_axis(reader)
    if (
        (get_origin(hint) is tuple and is_attribute(get_args(hint)[0]))
        or reader.at("#")
        or reader.at("@")
        or reader.at('"')
    ):
        return reader.attribute()
    if reader.at("["):
        return reader.integers()
    if reader.accept_word("true"):
        return True
    if reader.accept_word("false"):
        return False
    text = reader.try_take(NUMBER)
    if text is None:
        return reader.attribute()
    if hint is float:
        return _read_float(reader, text)
    return reader.to_integer(text) if INTEGER.fullmatch(text) else float(text)


def _read_float(reader: ElementsReader, text: str) -> float:
    try:
        return float(float_of(text, F64))
    except ValueError as error:
        raise reader.error(str(error)) from None


def _read_axis(reader: ElementsReader) -> object:
    """Reads `<name = "x", size = 2>`, with or without its mnemonic."""
    return reader.attribute() if reader.at("#") else read_body(reader, MeshAxis)


def _read_sub_axis(reader: ElementsReader) -> SubAxis:
    """`(1)2`"""
    reader.expect("(")
    pre_size = reader.integer()
    reader.expect(")")
    return SubAxis(pre_size, reader.integer())


def read_convolution(reader: ElementsReader) -> Struct:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`"""
    given: dict[str, object] = {}
    for (part, letters), separator in zip(_CONV_PARTS, ("x", "->", ""), strict=True):
        pos = reader.pos
        items = reader.listed(lambda: reader.try_take(INTEGER) or reader.take(WORD, "a dimension"), "[", "]")
        places = {item: place for place, item in enumerate(items)}
        spatial = [str(index) for index in range(len(items) - len(letters))]
        if len(places) != len(items) or set(places) != {*letters, *spatial}:
            raise reader.error(f"the {part} has dimensions {items}, expected each of {[*letters, *spatial]} once", pos)
        given |= {f"{part}_{name}_dimension": places[letter] for letter, name in letters.items()}
        given[f"{part}_spatial_dimensions"] = tuple(places[index] for index in spatial)
        if separator:
            reader.expect(separator)
    return STRUCTS[_CONV](**given)


def _bound(reader: ElementsReader) -> int | None:
    if reader.accept("?"):
        return None
    pos = reader.pos
    bound = reader.integer()
    if bound < 0:
        raise reader.error(f"has the bound {bound}, expected at least 0", pos)
    return bound


def _read_type_extensions(reader: ElementsReader) -> Bounds:
    """Reads `<bounds = [4, ?]>`, the older form of `#stablehlo.bounds<4, ?>`."""
    reader.expect("<")
    reader.expect_word("bounds")
    reader.expect("=")
    bounds = reader.listed(lambda: _bound(reader), "[", "]")
    reader.expect(">")
    return Bounds(tuple(bounds))
