"""Writes Shardy's attributes, converting the text in programs to the encoding in files. Text that MLIR would write
differently stays text, which every reader of the dialect accepts too, so that reading restores the same text."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trivium.ir.attributes import OpaqueAttribute, SymbolRef
from trivium.ir.bytecode.tables import EntryWriter
from trivium.ir.text.lexer import quote, symbol_text, unescape

_NAME = r'"(?:[^"\\]|\\.)*"'
_NUMBER = r"0|[1-9]\d{0,17}"
_AXIS = re.compile(rf"({_NAME})(?::\(({_NUMBER})\)({_NUMBER}))?")
_MESH_AXIS = re.compile(rf"({_NAME})=({_NUMBER})")
_MESH = re.compile(rf"<\[(.*?)\](?:, device_ids=\[((?:{_NUMBER})(?:, (?:{_NUMBER}))*)\])?>")
_DIMENSION = re.compile(rf"\{{(.*)\}}(?:p({_NUMBER}))?")
_REPLICATED = re.compile(r"replicated=\{(.+)\}")
_UNREDUCED = re.compile(r"unreduced=(|max|min)\{(.+)\}")
_TOKEN = re.compile(rf"{_NAME}|.")
_REDUCTIONS = ("", "max", "min")


@dataclass(frozen=True)
class Node:
    """An encoded attribute: its code, and the values after it."""

    code: int
    values: tuple[object, ...]


@dataclass(frozen=True)
class _Flagged:
    """A number that may be missing."""

    value: int | None


def write_attribute(out: EntryWriter, value: Any) -> None:
    """Writes the bytes of an attribute."""
    if isinstance(value, Node):
        out.varint(value.code)
        for part in value.values:
            _write(out, part)
    else:
        out.as_text(value.text)


def _write(out: EntryWriter, part: object) -> None:
    match part:
        case bool():
            out.byte(part)
        case int():
            out.signed(part)
        case str():
            out.string(part)
        case tuple():
            out.varint(len(part))
            for item in part:
                out.signed(item) if isinstance(item, int) else out.attribute(item, _dialect(item))
        case _Flagged(value):
            out.flagged(value or 0, value is not None)
        case None | Node(code=3):
            out.optional_attribute(part)
        case _:
            out.attribute(part, _dialect(part))


def _dialect(value: object) -> str:
    return "builtin" if isinstance(value, str | SymbolRef) else "sdy"


# Parsing the text


def encoded(value: Any) -> Any:
    """Returns the attribute in encoded form, or unchanged if its text is not one of the known forms."""
    if isinstance(value, OpaqueAttribute):
        for opening, read in _READERS.items():
            if value.text.startswith(opening) and _is_spaced(value.text):
                with suppress(ValueError):
                    return read(value.text.removeprefix(opening))
    return value


def _is_spaced(text: str) -> bool:
    """Whether there is a space after each comma, and nowhere else."""
    tokens = [token for token in _TOKEN.findall(text) if token != " "]
    return "".join(f"{token} " if token == "," else token for token in tokens) == text


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match


def _items(text: str) -> list[str]:
    """Splits a text at the commas that are outside of brackets."""
    items, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in "<[{(") - (token in ">]})") if len(token) == 1 else 0
        if token == "," and not depth:
            items.append("")
        else:
            items[-1] += token
    return [item.strip() for item in items] if text.strip() else []


def _inside(text: str, brackets: str) -> str:
    text = text.strip()
    if not (text.startswith(brackets[0]) and text.endswith(brackets[1])):
        raise ValueError(text)
    return text[1:-1]


def _name(text: str) -> str:
    name = unescape(text)
    if quote(name) != text:
        raise ValueError(text)
    return name


def _axis(text: str) -> Node:
    name, before, size = _match(_AXIS, text).groups()
    return Node(4, (_name(name), None if size is None else Node(3, (int(before), int(size)))))


def _axes(text: str) -> tuple[Node, ...]:
    return tuple(map(_axis, _items(text)))


def _mesh_axis(text: str) -> Node:
    name, size = _match(_MESH_AXIS, text).groups()
    return Node(1, (_name(name), int(size)))


def _mesh(text: str) -> Node:
    axes, devices = _match(_MESH, text).groups()
    return Node(2, (tuple(map(_mesh_axis, _items(axes))), tuple(map(int, _items(devices or "")))))


def _dimension(text: str) -> Node:
    axes, priority = _match(_DIMENSION, text).groups()
    named = _items(axes)
    is_open = named[-1:] == ["?"]
    priority = _Flagged(None if priority is None else int(priority))
    return Node(5, (tuple(map(_axis, named[: len(named) - is_open])), not is_open, priority))


def _sharding(text: str) -> Node:
    mesh, dimensions, *rest = _items(_inside(text, "<>"))
    replicated: tuple[Node, ...] = ()
    if rest and rest[0].startswith("replicated="):
        replicated = _axes(_match(_REPLICATED, rest.pop(0))[1])
    values = (_mesh_or_symbol(mesh), tuple(map(_dimension, _items(_inside(dimensions, "[]")))), replicated)
    if not rest:
        return Node(6, values)
    (unreduced,) = rest
    reduction, axes = _match(_UNREDUCED, unreduced).groups()
    values = (*values, _axes(axes))
    return Node(17, (*values, _REDUCTIONS.index(reduction))) if reduction else Node(15, values)


def _mesh_or_symbol(text: str) -> Any:
    if text.startswith("mesh<"):
        return _mesh(text.removeprefix("mesh"))
    name = _name(text[1:]) if text.startswith('@"') else text[1:]
    if symbol_text(name) != text:
        raise ValueError(text)
    return SymbolRef(name)


def _shardings(text: str) -> Node:
    each = tuple(map(_sharding, _items(_inside(_inside(text, "<>"), "[]"))))
    return Node(7 if all(node.code == 6 for node in each) else 16, (each,))


def _manual_axes(text: str) -> Node:
    return Node(0, (tuple(map(_name, _items(_inside(text.removesuffix(">"), "{}")))),))


_READERS: dict[str, Callable[[str], Node]] = {
    "#sdy.mesh<": lambda text: _mesh(f"<{text}"),
    "#sdy.sharding<": lambda text: _sharding(f"<{text}"),
    "#sdy.sharding_per_value<": lambda text: _shardings(f"<{text}"),
    "#sdy<manual_axes": _manual_axes,
}
