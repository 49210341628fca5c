"""Collects everything that files of a version cannot have while a program is written, to report it all at once."""

from __future__ import annotations

from dataclasses import replace

from trivium.ir.bytecode.versions import Version
from trivium.ir.core import Operation
from trivium.ir.declare import OPS
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.ops.control import Composite


class Refusals:
    """What version `target` cannot have. `op` is being written. `version` is the lowest one that can have everything;
    `None` if there is none."""

    def __init__(self, target: Version):
        self.target = target
        self.version: Version | None = target
        self.op: Operation | None = None
        self._found: dict[tuple[str, str], Unsupported] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def require(self, version: Version, what: str = "") -> None:
        """Records that files older than `version` cannot have the op, or `what` it has."""
        if version > self.target:
            self._add(f"{what} needs {version}".strip())
            if self.version is not None:
                self.version = max(self.version, version)

    def refuse(self, reason: str) -> None:
        """Records that no file can have the op, for this reason."""
        self._add(reason)
        self.version = None

    def error(self) -> Error:
        """Returns an error that lists all of them."""
        where = f"for version {self.target} of StableHLO" if self.version is not None else "as a portable artifact"
        return UnsupportedOpError(f"the program cannot be written {where}", list(self._found.values()))

    def _add(self, reason: str) -> None:
        assert self.op is not None
        name = _name_of(self.op)
        found = self._found.get((name, reason))
        if found is None:
            self._found[name, reason] = Unsupported(name, 1, self.op.location.describe(), reason)
        else:
            self._found[name, reason] = replace(found, count=found.count + 1)


def _name_of(op: Operation) -> str:
    """Returns the op's name for messages; for a composite that stands for an op, the name of that op."""
    return op.name if isinstance(op, Composite) and op.name in OPS else op.NAME
