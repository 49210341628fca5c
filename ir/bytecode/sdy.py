"""Shardy's attributes in bytecode. Programs keep them as text, so reading converts them to MLIR's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.ir.attributes import OpaqueAttribute, SymbolRef
from trivium.ir.bytecode.sdy_writing import encoded, write_attribute
from trivium.ir.bytecode.stablehlo import refuse
from trivium.ir.bytecode.tables import Dialect, EntryReader
from trivium.ir.text.lexer import quote, symbol_text

_MESH, _SHARDING = "#sdy.mesh", "#sdy.sharding"
_REDUCTIONS = ("", "max", "min")


@dataclass(frozen=True)
class Piece:
    """An attribute that occurs only inside others, as text."""

    text: str


def _pieces(reader: EntryReader) -> list[str]:
    return [reader.expect(piece, Piece).text for piece in reader.attributes()]


def _joined(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))


# Meshes and axes


def _read_mesh_axis(reader: EntryReader) -> Piece:
    return Piece(f"{quote(reader.string())}={reader.signed()}")


def _read_mesh(reader: EntryReader) -> OpaqueAttribute:
    axes, devices = _pieces(reader), reader.signeds()
    ids = f", device_ids=[{_joined(devices)}]" if devices else ""
    return OpaqueAttribute(f"{_MESH}<[{_joined(axes)}]{ids}>")


def _read_sub_axis(reader: EntryReader) -> Piece:
    return Piece(f":({reader.signed()}){reader.signed()}")


def _read_axis(reader: EntryReader) -> Piece:
    name, part = quote(reader.string()), reader.optional_attribute()
    return Piece(name if part is None else name + reader.expect(part, Piece).text)


def _read_manual_axes(reader: EntryReader) -> OpaqueAttribute:
    names = [quote(reader.expect(name, str)) for name in reader.attributes()]
    return OpaqueAttribute(f"#sdy<manual_axes{{{_joined(names)}}}>")


# Shardings


def _read_dimension(reader: EntryReader) -> Piece:
    axes, closed, priority = _pieces(reader), reader.byte(), reader.varint()
    text = _joined(axes if closed else [*axes, "?"])
    return Piece(f"{{{text}}}" + (f"p{priority >> 1}" if priority & 1 else ""))


def _sharding_reader(unreduced: bool, reduction: bool = False) -> Callable[[EntryReader], OpaqueAttribute]:
    """Returns a function that reads a sharding. Later forms have axes along which a sum (or even later, any reduction)
    is still pending."""

    def read(reader: EntryReader) -> OpaqueAttribute:
        mesh, dimensions, replicated = reader.attribute(), _pieces(reader), _pieces(reader)
        rest = _pieces(reader) if unreduced else []
        kind = reader.signed() if reduction else 0
        if not 0 <= kind < len(_REDUCTIONS):
            raise reader.error(f"a sharding has the reduction {kind}, expected one of 0 to {len(_REDUCTIONS) - 1}")
        text = f"{_mesh_text(reader, mesh)}, [{_joined(dimensions)}]"
        text += f", replicated={{{_joined(replicated)}}}" if replicated else ""
        text += f", unreduced={_REDUCTIONS[kind]}{{{_joined(rest)}}}" if rest else ""
        return OpaqueAttribute(f"{_SHARDING}<{text}>")

    return read


def _mesh_text(reader: EntryReader, mesh: Any) -> str:
    if isinstance(reader.expect(mesh, SymbolRef, OpaqueAttribute), SymbolRef):
        return symbol_text(mesh.name)
    return mesh.text.removeprefix("#sdy.")


def _read_shardings(reader: EntryReader) -> OpaqueAttribute:
    each = [reader.expect(item, OpaqueAttribute).text.removeprefix(_SHARDING) for item in reader.attributes()]
    return OpaqueAttribute(f"#sdy.sharding_per_value<[{_joined(each)}]>")


# Rules: how the factors of an op's dimensions correspond


def _factor(number: int) -> str:
    """i, j, ..., z, z_1, z_2, ..."""
    return chr(ord("i") + number) if number <= ord("z") - ord("i") else f"z_{number - ord('z') + ord('i')}"


def _read_dimension_factors(reader: EntryReader) -> Piece:
    return Piece("".join(map(_factor, reader.signeds())))


def _read_tensor_factors(reader: EntryReader) -> Piece:
    return Piece(f"[{_joined(_pieces(reader))}]")


def _read_rule(reader: EntryReader) -> OpaqueAttribute:
    sizes, operands, results = reader.signeds(), _pieces(reader), _pieces(reader)
    text = f"({_joined(operands)})->({_joined(results)})"
    if sizes:
        text += f" {{{_joined([f'{_factor(index)}={size}' for index, size in enumerate(sizes)])}}}"
    for kind in ("reduction", "need_replication", "permutation", "blocked_propagation"):
        factors = reader.signeds()
        text += f" {kind}={{{_joined([_factor(factor) for factor in factors])}}}" if factors else ""
    return OpaqueAttribute(f"#sdy.op_sharding_rule<{text}{', custom' if reader.byte() else ''}>")


_ATTRIBUTES: dict[int, Callable[[EntryReader], object]] = {
    0: _read_manual_axes,
    1: _read_mesh_axis,
    2: _read_mesh,
    3: _read_sub_axis,
    4: _read_axis,
    5: _read_dimension,
    6: _sharding_reader(unreduced=False),
    7: _read_shardings,
    8: _read_dimension_factors,
    9: _read_tensor_factors,
    10: _read_rule,
    15: _sharding_reader(unreduced=True),
    16: _read_shardings,
    17: _sharding_reader(unreduced=True, reduction=True),
}

SDY = Dialect(_ATTRIBUTES, {}, write_attribute, refuse, canonical=encoded)
