"""Prints a program, or one op for a message, as MLIR text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from secrets import token_hex
from typing import Any

from trivium.ir.attributes import Attribute, DenseArray
from trivium.ir.core import BlockArgument, Operation, Region, Value
from trivium.ir.declare import REQUIRED, Op, group_sizes
from trivium.ir.location import Location
from trivium.ir.services import SERVICES
from trivium.ir.text import forms  # noqa: F401  (registers the pretty forms)
from trivium.ir.text.assembly import form_of, functional_text
from trivium.ir.text.attributes import AttributeWriter, key_text
from trivium.ir.text.elements import hex_pieces
from trivium.ir.text.locations import location_text, shared_locations
from trivium.ir.text.names import name_values
from trivium.ir.types import I32, Type

_LINE_LIMIT = 400


def print_module(module: Operation, *, generic: bool = False, locations: bool = False, elide: bool = False) -> str:
    """Returns the text of a module, or of any op and everything inside it. `generic` writes every op in the generic
    form, `locations` adds where each op came from, and `elide` leaves out the elements of large tensors; such a text
    cannot be parsed."""
    return "".join(text_pieces(module, generic=generic, locations=locations, elide=elide))


def text_pieces(
    module: Operation, *, generic: bool = False, locations: bool = False, elide: bool = False
) -> Iterator[str]:
    """Yields the result of `print_module` piece by piece, because most of it may be the elements of tensors."""
    mark = f"\0{token_hex(16)}\0"  # random digits, so that no string of the program contains it
    printer = Printer(name_values(module, generic), generic=generic, locations=locations, elide=elide, mark=mark)
    if locations:
        # A first pass finds the shared locations: pretty forms leave some locations out.
        printer.operation(module)
        printer.aliases = shared_locations(printer.located)
        printer.apart.clear()
    text = printer.operation(module) + "\n"
    first, *others = (text + printer.alias_section() + printer.resource_section()).split(mark)
    yield first
    for array, following in zip(printer.apart, others, strict=True):
        yield from hex_pieces(array)
        yield following


SERVICES.text_pieces = text_pieces


def print_op(op: Operation) -> str:
    """Returns one line for a message: the op as in the text of its function, without regions and long attributes. The
    op may be incomplete."""
    root = op
    while (parent := root.parent_op) is not None and root.NAME != "func.func":
        root = parent
    printer = Printer(name_values(root), brief=True)
    text = printer.operation(op)
    return text if len(text) <= _LINE_LIMIT else f"{text[:_LINE_LIMIT]}..."


class Printer(AttributeWriter):
    """Writes ops, with the given names of values."""

    def __init__(self, names: Mapping[Value, str], *, generic: bool = False, locations: bool = False, **options: Any):
        super().__init__(**options)
        self.names = names
        self.generic = generic
        self.locations = locations
        self.aliases: Mapping[Location, str] = {}
        self.located: list[Location] = []
        self.indent = ""
        self._types: dict[Type, str] = {}

    # Used by the forms

    def value(self, value: Value) -> str:
        return self.names.get(value, "%?")

    def values(self, values: Iterable[Value]) -> str:
        return ", ".join([self.names.get(value, "%?") for value in values])

    def type(self, kind: Type) -> str:
        text = self._types.get(kind)
        if text is None:
            text = self._types[kind] = str(kind)
        return text

    def types(self, kinds: Iterable[Type]) -> str:
        return ", ".join([self.type(kind) for kind in kinds])

    def functional_type(self, op: Operation) -> str:
        return functional_text(op, self)  # type: ignore[arg-type]

    def argument(self, argument: BlockArgument, attributes: Mapping[str, Attribute] | None = None) -> str:
        """Writes the definition of a block's argument: `%arg0: type {attributes} loc(...)`."""
        about = f" {self.dictionary(attributes)}" if attributes else ""
        return f"{self.value(argument)}: {self.type(argument.type)}{about}{self._location(argument.location)}"

    def optional_dictionary(self, op: Operation, shown: frozenset[str] = frozenset()) -> str:
        """Writes the attributes that a form does not show as ` {...}`, or nothing if there are none."""
        if not op.attributes and not op.extra:
            return ""
        entries = {**self._declared(op, shown), **op.extra}
        return f" {self.dictionary(entries)}" if entries else ""

    def region(self, region: Region, header: bool = True) -> str:
        """Writes `{ operations }`; `header` adds the arguments of the blocks."""
        if self.brief:
            return "{...}"
        lines = ["{"]
        outer = self.indent
        for number, block in enumerate(region.blocks):
            if number or (header and (block.arguments or block.first is None)):
                arguments = ", ".join(map(self.argument, block.arguments))
                lines.append(f"{outer}^bb{number}{f'({arguments})' if arguments else ''}:")
            self.indent = outer + "  "
            lines += [self.indent + self.operation(op) for op in block]
            self.indent = outer
        lines.append(f"{outer}}}")
        return "\n".join(lines)

    # Operations

    def operation(self, op: Operation) -> str:
        form = None if self.generic else form_of(type(op))
        if form is not None and isinstance(op, Op) and form.fits(op):
            body = form.print(op, self)
            text = f"{_short_name(op)}{'' if body[:1] in ('', '(') else ' '}{body}"
        else:
            text = f'"{op.NAME}"{self.generic_body(op)}'
        return f"{self._results(op)}{text}{self._location(op.location)}"

    def _results(self, op: Operation) -> str:
        if len(op.results) == 1:
            return f"{self.value(op.results[0])} = "
        if not op.results:
            return ""
        name, _, number = self.value(op.results[0]).partition("#")
        return f"{name}:{len(op.results)} = " if number else f"{self.values(op.results)} = "

    def generic_body(self, op: Operation) -> str:
        """Writes what follows the name of an op in the generic form."""
        text = f"({self.values(op.operands)})"
        properties = self._declared(op)
        if op.segments or getattr(op, "STATES_GROUPS", False):
            properties |= self._segments(op)
        if properties:
            text += f" <{self.dictionary(properties)}>"
        if op.regions:
            text += f" ({', '.join(map(self.region, op.regions))})"
        if op.extra:
            text += f" {self.dictionary(op.extra)}"
        return f"{text} : {self.functional_type(op)}"

    def _declared(self, op: Operation, hidden: frozenset[str] = frozenset()) -> dict[str, Attribute]:
        """Returns the declared attributes that differ from their defaults, encoded for the file."""
        entries = {}
        for field in getattr(op, "ATTRIBUTES", ()):
            value = op.attributes.get(field.name)
            if value is None or field.name in hidden or (field.default is not REQUIRED and value == field.default):
                continue
            entries[field.name] = field.codec.encode(value)
        return entries

    def _segments(self, op: Operation) -> dict[str, Attribute]:
        """Returns the sizes of groups of operands and results: those that do not follow from the counts, or all if MLIR
        requires them."""
        sizes: dict[str, tuple[int, ...]] = {}
        if isinstance(op, Op) and op.STATES_GROUPS:
            sizes["operands"] = group_sizes(op.OPERANDS, len(op.operands))
            sizes["results"] = group_sizes(op.RESULTS, len(op.results))
        sizes.update(op.segments or {})
        keys = {"operands": "operandSegmentSizes", "results": "resultSegmentSizes"}
        return {keys[what]: DenseArray(I32, counts) for what, counts in sizes.items()}

    def _location(self, location: Location) -> str:
        if not self.locations:
            return ""
        self.located.append(location)
        return f" loc({self.aliases.get(location) or location_text(location, self.attribute, self.aliases)})"

    # The end of the file

    def alias_section(self) -> str:
        """Writes the location aliases that the ops refer to."""
        return "".join(
            f"{alias} = loc({location_text(location, self.attribute, self.aliases)})\n"
            for location, alias in self.aliases.items()
        )

    def resource_section(self) -> str:
        """Writes the tensors that are stored as resources. Four bytes of alignment precede the data."""
        if not self.resources:
            return ""
        entries = []
        for name, value in self.resources.items():
            array = value.array
            alignment = array.dtype.itemsize.to_bytes(4, "little").hex().upper()
            entries.append(f'      {key_text(name)}: "0x{alignment}{self.hexadecimal(array)}"')
        section = ",\n".join(entries)
        return f"\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{section}\n    }}\n  }}\n#-}}\n"


def _short_name(op: Operation) -> str:
    """Returns the op's name as written in its place: inside functions, the prefix `func.` is omitted."""
    if op.NAME == "builtin.module":
        return "module"
    if not op.NAME.startswith("func."):
        return op.NAME
    parent = op.parent_op
    inside = parent is not None and parent.NAME == "func.func"
    return op.NAME.removeprefix("func.") if inside else op.NAME
