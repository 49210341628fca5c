"""Splits a module into parts, of which machine code can be generated at the same time, and while the next are emitted.
What is internal to the module is hidden in its parts: another part may name it, and the linker, which joins their
object files, exports it no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import llvmlite.ir as ll

SIZE = 150_000
"""The characters of assembly from which on a part is complete. Its machine code takes about 0.1 s, far longer than what
comes with another part: a thread, a code generator and declarations."""

_INTERNAL = re.compile(r'^(define|@"[^"]*" =) internal ')
_REFERENCE = re.compile(r'@"[^"]*"')


class Parts:
    """The assembly of a module that is still being emitted, part after part."""

    def __init__(self, size: int = SIZE):
        self._size = size
        self._seen = 0
        self._declared: list[ll.values.NamedValue] = []
        self._group: dict[str, str] = {}
        self._length = 0
        self._is_first = True

    def take(self, module: ll.Module) -> Iterator[str]:
        """Yields the parts of at least `size` characters that are complete. All that the module defines now is final,
        and there is more to come."""
        values = [*self._declared, *islice(module.globals.values(), self._seen, None)]
        self._declared, self._seen = [], len(module.globals)
        for value in values:
            if _is_declared(value):
                self._declared.append(value)
                continue
            if self._length >= self._size:
                self._is_first = False
                yield self._part(module)
            self._group[value.get_reference()] = text = str(value)
            self._length += len(text)

    def rest(self, module: ll.Module) -> Iterator[str]:
        """Yields the remaining parts; `module` is complete."""
        yield from self.take(module)
        yield self._part(module)

    def _part(self, module: ll.Module) -> str:
        group, self._group, self._length = self._group, {}, 0
        if not self._is_first:
            group = {name: _INTERNAL.sub(r"\1 hidden ", text) for name, text in group.items()}
        return _assembly(module, group)


def _assembly(module: ll.Module, definitions: dict[str, str]) -> str:
    """Returns the assembly of a module with some definitions of another, and declarations of what these refer to."""
    part = ll.Module(module.name)
    part.triple, part.data_layout = module.triple, module.data_layout
    part.metadata, part.namedmetadata = module.metadata, module.namedmetadata
    values = {value.get_reference(): value for value in module.globals.values()}
    referred = dict.fromkeys(name for text in definitions.values() for name in _REFERENCE.findall(text))
    for value in (values[name] for name in referred if name not in definitions):
        if _is_declared(value):
            part.globals[value.name] = value
        else:
            _declare_hidden(part, value)
    return "\n".join([str(part), *definitions.values()])


def _declare_hidden(part: ll.Module, value: ll.values.NamedValue) -> None:
    if isinstance(value, ll.Function):
        ll.Function(part, value.ftype, value.name).linkage = "hidden"
    else:
        variable = ll.GlobalVariable(part, value.value_type, value.name)
        variable.linkage, variable.storage_class = "external", "hidden"
        variable.global_constant, variable.align = value.global_constant, value.align


def _is_declared(value: ll.values.NamedValue) -> bool:
    return value.is_declaration if isinstance(value, ll.Function) else value.initializer is None
