"""The text of a module, with the op that each line belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex

from trivium.ir.core import Operation, Value
from trivium.ir.text.names import name_values
from trivium.ir.text.printer import Printer

LONGEST = 400
"""The characters of a line that are shown."""


class _Marking(Printer):
    """Writes a mark and a number before each op."""

    def __init__(self, names: Mapping[Value, str], numbers: Mapping[Operation, int], mark: str):
        super().__init__(names, elide=True)
        self.numbers, self.sign = numbers, mark

    def operation(self, op: Operation) -> str:
        return f"{self.sign}{self.numbers.get(op, -1)}{self.sign}{super().operation(op)}"


def listing(module: Operation, numbers: Mapping[Operation, int]) -> tuple[list[str], list[int]]:
    """Returns the lines of a module and, for each, the number of its op, or -1. Lines that belong to no op, such as
    those that end a region, have -1."""
    mark = f"\0{token_hex(8)}\0"  # random digits, so that no string of the program contains it
    text = _Marking(name_values(module), numbers, mark).operation(module)
    lines, owners = [], []
    for line in text.split("\n"):
        indent, *parts = line.split(mark)
        owners.append(int(parts[0]) if parts else -1)
        whole = indent + "".join(parts[1::2])
        lines.append(whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}…")
    return lines, owners
