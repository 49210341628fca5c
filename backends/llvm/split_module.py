"""Splits a module into parts, of which machine code can be generated at the same time. What was internal to the module
is hidden in its parts: another part may name it, and the linker, which joins their object files, exports it no more."""

from __future__ import annotations

import re

import llvmlite.ir as ll

SIZE = 150_000
"""The characters of assembly from which on a part is complete. Its machine code takes about 0.1 s, far longer than what
comes with another part: a thread, a code generator and declarations."""

_INTERNAL = re.compile(r'^(define|@"[^"]*" =) internal ')
_REFERENCE = re.compile(r'@"[^"]*"')


def split(module: ll.Module, size: int = SIZE) -> list[str]:
    """Returns the assembly of modules that define, in order, what `module` defines: of more than one if its assembly is
    longer than `size` characters."""
    values = {value.get_reference(): value for value in module.globals.values()}
    definitions = {name: str(value) for name, value in values.items() if not _is_declared(value)}
    groups: list[dict[str, str]] = [{}]
    length = 0
    for name, text in definitions.items():
        if length >= size:
            groups.append({})
            length = 0
        groups[-1][name] = text
        length += len(text)
    if len(groups) == 1:
        return [_assembly(module, definitions, values)]
    hidden = ({name: _INTERNAL.sub(r"\1 hidden ", text) for name, text in group.items()} for group in groups)
    return [_assembly(module, group, values) for group in hidden]


def _assembly(module: ll.Module, definitions: dict[str, str], values: dict[str, ll.values.NamedValue]) -> str:
    """Returns the assembly of a module with some definitions of another, and declarations of what these refer to."""
    part = ll.Module(module.name)
    part.triple, part.data_layout = module.triple, module.data_layout
    part.metadata, part.namedmetadata = module.metadata, module.namedmetadata
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
