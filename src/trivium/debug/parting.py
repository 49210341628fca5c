"""The point where a program diverges from its meaning: the first op with a wrong result."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.debug.differences import Difference


@dataclass(frozen=True)
class Parting:
    """The first op whose result is wrong, though its operands are right. `during` says which part of Trivium made it
    wrong: importing, or compiling."""

    op: str
    source: str
    result: int
    difference: Difference
    during: str

    def __str__(self) -> str:
        which = f"result {self.result}" if self.result else "the result"
        lines = [f"{which} of this op is wrong: {self.difference}", f"  in:    {self.op}"]
        lines += [f"  from:  {self.source}"] if self.source else []
        return "\n".join([*lines, f"  while: {self.during}"])
