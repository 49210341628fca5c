"""Modules that show hosts what they query of a compiled program: the types, shardings and layouts of its arguments and
results, around a call of the program itself."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.backends.plugin.layouts import Order
from trivium.ir.types import TensorType, Type

DESCRIPTION = "description"
"""The name of an artifact's text with the module."""


def description(inputs: Sequence[Type], results: Sequence[Type], attributes: str) -> str:
    """Returns a module with these attributes."""
    given = ", ".join(f"%arg{index}: {kind}" for index, kind in enumerate(inputs))
    names = ", ".join(f"%arg{index}" for index in range(len(inputs)))
    taken, gives = (", ".join(map(str, kinds)) for kinds in (inputs, results))
    found = ", ".join(f"%result{index}" for index in range(len(results)))
    lines = [
        f"module attributes {{{attributes}}} {{",
        f"func.func public @main({given}) -> ({gives}) {{",
        f"{found}{' = ' if found else ''}stablehlo.custom_call @trivium({names}) {{has_side_effect = true}} : "
        f"({taken}) -> ({gives})",
        f"return {found} : {gives}" if found else "return",
        "}}",
    ]
    return "\n".join(lines)


def layout_attributes(inputs: Sequence[Type], results: Sequence[Type], orders: Sequence[Order]) -> str:
    """Returns the attributes for layouts, by which XLA's importer sets those of the program's arguments and results."""
    if not any(orders):
        return ""
    ranks = [len(kind.shape) if isinstance(kind, TensorType) else 0 for kind in (*inputs, *results)]
    orders = [order or tuple(range(rank))[::-1] for order, rank in zip(orders, ranks, strict=True)]
    written = [f"dense<[{', '.join(map(str, order))}]> : tensor<{len(order)}xindex>" for order in orders]
    written = ["dense<> : tensor<0xindex>" if text.startswith("dense<[]>") else text for text in written]
    before, after = ", ".join(written[: len(inputs)]), ", ".join(written[len(inputs) :])
    return (
        f"mhlo.xla_entry_computation_parameter_layouts = [{before}], "
        f"mhlo.xla_entry_computation_result_layout = [{after}]"
    )
