"""Every op on lists of tensors, with arguments that its signature takes."""

from __future__ import annotations

from typing import Any

import torch

from tests.importers.pytorch.cases import Case, case, p, v
from trivium.importers.pytorch.composed_foreach import PREFIX
from trivium.importers.pytorch.composition import COMPOSED


def argument(kind: str, op: str) -> Any:
    """Returns an argument of a type, for two square matrices."""
    match kind:
        case "List[Tensor]":
            return [p(2, 2), p(2, 2)]
        case "List[number]":
            return [0.5, 2.0]
        case "Tensor":
            return v(0.5, 2.0) if "addc" in op else torch.tensor(0.5)
    return 0.5


def cases() -> list[Case]:
    found = []
    for op in sorted(map(str, COMPOSED)):
        name, _, overload = op.removeprefix("aten.").rpartition(".")
        if not f"aten::{name}".startswith(PREFIX):
            continue
        schema = torch._C._get_schema(f"aten::{name}", "" if overload == "default" else overload)
        wanted = [x for x in schema.arguments if not x.has_default_value()]
        found.append(case(f"{name}.{overload}", *(argument(str(x.type), op) for x in wanted)))
    return found


CASES = cases()
