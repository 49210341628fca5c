"""Tensors whose dimensions are in another order in memory, such as images in `torch.channels_last`, or transposed
matrices: programs are row-major, so a program takes and returns them in the order of memory, instead of copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from trivium.backends.plugin.layouts import Layouts, turn
from trivium.importers.pytorch import ImportedGraph, ResultIndex, ViewIndex
from trivium.importers.pytorch.symbols import has_symbols

Order = tuple[int, ...]
"""Dimensions, the first one of them outermost in memory."""


@dataclass(frozen=True)
class LaidOut:
    """The orders of a program's arguments, `None` for row-major, or none of them at all; and those of the results that
    are not row-major, by index."""

    arguments: tuple[Order | None, ...]
    results: dict[int, Order]


def lay_out(imported: ImportedGraph, inputs: Sequence[object]) -> LaidOut:
    """Lets a graph's program take and return tensors in the order in which PyTorch has them in memory."""
    found: dict[int, object] = {}
    for output, meta in zip(imported.outputs, imported.metas, strict=True):
        if isinstance(output, ResultIndex):
            found[output.index] = meta
        elif isinstance(output, ViewIndex) and isinstance(output.base, ResultIndex):
            found[output.base.index] = output.view.base_meta
    main = imported.module.main
    arguments = tuple(_order(inputs[index]) for index in imported.arguments)
    results = {index: order for index, meta in found.items() if (order := _order(meta)) is not None}
    # The state of the random generator comes after the tensors.
    taken = [*arguments, *[None] * (len(main.arguments) - len(arguments))]
    returned = [results.get(index) for index in range(len(main.returned))]
    turn(imported.module, Layouts(tuple(map(_from_inside, taken)), tuple(map(_from_inside, returned))))
    return LaidOut(arguments if any(arguments) else (), results)


def _order(meta: object) -> Order | None:
    """Returns the order of a tensor without gaps that is not row-major."""
    if not isinstance(meta, torch.Tensor) or meta.layout is not torch.strided or has_symbols(meta):
        return None
    if meta.is_contiguous():
        return None
    # Only numbers: fake tensors may belong to another mode than the one that is active.
    shape, strides = tuple(meta.shape), meta.stride()
    order = tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], d)))
    several = [d for d in order if shape[d] > 1]
    without_gaps = all(strides[d] == math.prod(shape[e] for e in several[i + 1 :]) for i, d in enumerate(several))
    return order if without_gaps else None


def _from_inside(order: Order | None) -> Order:
    return order[::-1] if order else ()


def inverse(order: Order) -> Order:
    """Returns the place of each dimension in an order."""
    return tuple(map(order.index, range(len(order))))
