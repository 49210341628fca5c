"""Tensors that are not row-major in memory, such as images in `torch.channels_last`, or transposed matrices: a program
takes and returns them in the order of memory, instead of copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from trivium.compiler.layouts import MinorToMajor, exchange_in_memory_order
from trivium.importers.pytorch import ImportedGraph, ResultIndex, ViewIndex
from trivium.importers.pytorch.symbols import has_symbols

Strides = tuple[int, ...]


@dataclass(frozen=True)
class TensorLayouts:
    """The orders of a program's arguments, or nothing if all are row-major; those of its results that it returns in
    another order, by index; and the strides that PyTorch expects of results, unless it expects row-major ones."""

    arguments: tuple[MinorToMajor, ...]
    results: dict[int, MinorToMajor]
    strides: dict[int, Strides]


def take_layouts(imported: ImportedGraph, inputs: Sequence[object], is_visible: Callable[[int], bool]) -> TensorLayouts:
    """Lets a graph's program take and return tensors in the order in which PyTorch has them in memory. Strides of
    outputs that are not visible to PyTorch's users do not matter."""
    shown = list(enumerate(zip(imported.outputs, imported.metas, strict=True)))
    own = {output.index: meta for _, (output, meta) in shown if isinstance(output, ResultIndex)}
    visible = {output.index: meta for i, (output, meta) in shown if isinstance(output, ResultIndex) and is_visible(i)}
    views = [output for output in imported.outputs if isinstance(output, ViewIndex)]
    bases = {view.base.index: view.view.base_meta for view in views if isinstance(view.base, ResultIndex)}
    main = imported.module.main
    arguments = tuple(_order(inputs[index]) for index in imported.arguments)
    results = {index: order for index, meta in {**own, **bases}.items() if (order := _order(meta))}
    # The state of the random generator comes after the tensors.
    taken = [*arguments, *[()] * (len(main.arguments) - len(arguments))]
    exchange_in_memory_order(imported.module, taken, [results.get(index, ()) for index in range(len(main.returned))])
    strides = {index: found for index, meta in {**visible, **bases}.items() if (found := _strides(meta))}
    return TensorLayouts(arguments if any(arguments) else (), results, strides)


def _strides(meta: object) -> Strides | None:
    if not isinstance(meta, torch.Tensor) or has_symbols(meta) or meta.is_contiguous():
        return None
    return tuple(int(stride) for stride in meta.stride())


def _order(meta: object) -> MinorToMajor:
    """Returns the order of a tensor without gaps."""
    if not isinstance(meta, torch.Tensor) or meta.layout is not torch.strided or has_symbols(meta):
        return ()
    if meta.is_contiguous():
        return ()
    # Only numbers: fake tensors may belong to another mode than the one that is active.
    shape, strides = tuple(meta.shape), meta.stride()
    order = tuple(sorted(range(len(shape)), key=lambda d: (strides[d], -d)))
    several = [d for d in order if shape[d] > 1]
    without_gaps = all(strides[d] == math.prod(shape[e] for e in several[:i]) for i, d in enumerate(several))
    return order if without_gaps else ()
