"""The structure of the outputs of a saved program, read from its JSON: PyTorch's own reader would import the modules
that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from trivium.importers.pytorch.archive import Json
from trivium.ir.errors import Error


def leaf_names(text: str, fields: Json, count: int) -> list[str]:
    """Returns the names of a structure's leaves, as one would write them after it: `['logits']`, `[0]`. `fields`
    contains those of named tuples."""
    protocol, structure = json.loads(text)
    if protocol != 1:
        raise Error(f"the program's structure has version {protocol}, expected 1")
    names = list(_leaves(structure, fields, ""))
    if len(names) != count:
        raise Error(f"the program's structure has {len(names)} outputs, expected {count}")
    return names


def _leaves(node: Json, fields: Json, path: str) -> Iterator[str]:
    if node["type"] is None:
        yield path
        return
    children = node["children_spec"]
    for child, key in zip(children, _keys(node, fields, len(children)), strict=True):
        yield from _leaves(child, fields, f"{path}{key}")


def _keys(node: Json, fields: Json, count: int) -> list[str]:
    """Returns how each child of a node is selected: by key, field or index."""
    context = node["context"]
    known = fields.get(context) if isinstance(context, str) else None
    if known is not None and len(known["field_names"]) == count:
        return [f".{field}" for field in known["field_names"]]
    context = _context(context)
    if isinstance(context, list) and len(context) == count:
        return [f"[{key!r}]" for key in context]
    return [f"[{index}]" for index in range(count)]


def _context(context: Json | str) -> object:
    """Returns the keys of a mapping; those of a `defaultdict` are beside its factory."""
    if isinstance(context, Mapping):
        return context.get("dict_context")
    try:
        return json.loads(context)
    except (TypeError, ValueError):
        return None
