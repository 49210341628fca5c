"""Which outputs of a graph share memory, as views of one tensor do. AOTAutograd itself reconstructs views of inputs,
and views if gradients are required; without gradients it leaves views among computed values to the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx


@dataclass(frozen=True)
class View:
    """An output that is a view of another node's result, or of an input. `meta` and `base_meta` are the fake tensors of
    both: they determine how the view lies in the memory of its base."""

    base: fx.Node
    meta: torch.Tensor
    base_meta: torch.Tensor

    def of(self, base: torch.Tensor) -> torch.Tensor:
        """Returns the view of a tensor that lies in memory as `base_meta` does; the tensor itself if the base is the
        output."""
        meta = self.meta
        if meta is self.base_meta:
            return base
        moved = base.storage_offset() * base.itemsize - int(self.base_meta.storage_offset()) * self.base_meta.itemsize
        offset = int(meta.storage_offset()) + int(moved) // int(meta.itemsize)
        shape, strides = tuple(map(int, meta.shape)), tuple(map(int, meta.stride()))
        if base.is_complex() and not meta.is_complex():
            base = torch.view_as_real(base)
        if meta.dtype == base.dtype:
            view = base.as_strided(shape, strides, offset)
        else:  # the same bits as numbers of another type
            view = torch.empty(0, dtype=meta.dtype, device="cpu").set_(base.untyped_storage(), offset, shape, strides)
        if meta.is_conj() != self.base_meta.is_conj():
            view = view.conj()
        return torch.ops.aten._neg_view.default(view) if meta.is_neg() != self.base_meta.is_neg() else view


def views_among(
    graph: fx.Graph, outputs: Sequence[Any], meta_of: Callable[[Any], Any], is_visible: Callable[[int], bool]
) -> dict[int, View]:
    """Returns the outputs, by index, that share memory with another output or with an input. Their base is the node
    that made the memory; the base itself is returned as a view that is all of it. `is_visible` says which outputs the
    user sees."""
    memory: dict[int, list[int]] = {}
    for index, node in enumerate(outputs):
        if isinstance(node, fx.Node) and is_visible(index) and (storage := _storage(meta_of(node))) is not None:
            memory.setdefault(storage, []).append(index)
    makers: dict[int, fx.Node] = {}
    for node in graph.nodes:
        if node.op != "output" and (storage := _storage(meta_of(node))) in memory:
            makers.setdefault(storage, node)
    return {
        index: View(makers[storage], meta_of(outputs[index]), meta_of(makers[storage]))
        for storage, indices in memory.items()
        if len(indices) > 1 or makers[storage].op == "placeholder"
        for index in indices
    }


def _storage(meta: Any) -> int | None:
    """Returns the identity of the memory of a fake tensor."""
    return meta.untyped_storage()._cdata if isinstance(meta, torch.Tensor) else None
