"""Which outputs of a graph share memory, as views of one tensor do. AOTAutograd itself reconstructs views of inputs,
and views if gradients are required; without gradients it leaves views among computed values to the graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import sympy
import torch
from torch import fx

from trivium.importers.pytorch.context import Meta
from trivium.importers.pytorch.symbols import has_symbols, symbolic

Numbers = Mapping[sympy.Basic, int]
"""What sizes and places that depend on elements of tensors are in one run."""

NONE: Numbers = {}


class Layout(NamedTuple):
    """How a tensor lies in memory, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class View:
    """An output that is a view of another node's result, or of an input. `meta` and `base_meta` are the fake tensors of
    both: they determine how the view lies in the memory of its base."""

    base: fx.Node
    meta: torch.Tensor
    base_meta: torch.Tensor

    def open(self) -> Iterator[sympy.Basic]:
        """Returns what depends on elements of tensors in the descriptions of both."""
        for meta in (self.meta, self.base_meta):
            found = map(symbolic, (*meta.shape, *meta.stride(), meta.storage_offset()))
            yield from (x for x in found if x is not None)

    def of(self, base: torch.Tensor, numbers: Numbers = NONE) -> torch.Tensor:
        """Returns the view of a tensor that lies in memory as `base_meta` does; the tensor itself if the base is the
        output."""
        meta = self.meta
        if meta is self.base_meta:
            return base
        (shape, strides, offset), given = layout_at(meta, numbers), layout_at(self.base_meta, numbers)
        moved = base.storage_offset() * base.itemsize - given.offset * self.base_meta.itemsize
        offset += int(moved) // int(meta.itemsize)
        if base.is_complex() and not meta.is_complex():
            base = torch.view_as_real(base)
        if meta.dtype == base.dtype:
            view = base.as_strided(shape, strides, offset)
        else:  # the same bits as numbers of another type
            view = torch.empty(0, dtype=meta.dtype, device="cpu").set_(base.untyped_storage(), offset, shape, strides)
        if meta.is_conj() != self.base_meta.is_conj():
            view = view.conj()
        return torch.ops.aten._neg_view.default(view) if meta.is_neg() != self.base_meta.is_neg() else view


def layout_at(meta: torch.Tensor, numbers: Numbers) -> Layout:
    """Returns how a tensor with this description lies in memory."""

    def number(given: int | torch.SymInt) -> int:
        expression = symbolic(given)
        return int(given) if expression is None else numbers[expression]

    return Layout(tuple(map(number, meta.shape)), tuple(map(number, meta.stride())), number(meta.storage_offset()))


def views_among(
    graph: fx.Graph, outputs: Sequence[object], meta_of: Callable[[fx.Node], Meta], is_visible: Callable[[int], bool]
) -> dict[int, View]:
    """Returns the outputs, by index, that share memory with another output or with an input. Their base is the node
    that made the memory; the base itself is returned as a view that is all of it. `is_visible` says which outputs the
    user sees."""
    memory: dict[int, dict[int, torch.Tensor]] = {}
    for index, node in enumerate(outputs):
        if isinstance(node, fx.Node) and is_visible(index) and has_memory(meta := meta_of(node)):
            memory.setdefault(memory_of(meta), {})[index] = meta
    makers: dict[int, tuple[fx.Node, torch.Tensor]] = {}
    for node in graph.nodes:
        if node.op != "output" and has_memory(meta := meta_of(node)):
            makers.setdefault(memory_of(meta), (node, meta))
    views: dict[int, View] = {}
    for storage, metas in memory.items():
        base, base_meta = makers[storage]
        if len(metas) > 1 or base.op == "placeholder":
            views.update((index, View(base, meta, base_meta)) for index, meta in metas.items())
    return views


def inputs_among(
    graph: fx.Graph, outputs: Sequence[object], meta_of: Callable[[fx.Node], Meta], inputs: Collection[int]
) -> dict[int, View]:
    """Returns the outputs, by index, that are one of these inputs, or all of its elements in the same order."""
    placeholders = {node: index for index, node in enumerate(graph.find_nodes(op="placeholder"))}
    makers = {
        memory_of(meta): (node, meta)
        for node, index in placeholders.items()
        if index in inputs and has_memory(meta := meta_of(node))
    }
    found: dict[int, View] = {}
    for index, node in enumerate(outputs):
        if isinstance(node, fx.Node) and has_memory(meta := meta_of(node)):
            base = makers.get(memory_of(meta))
            if base is not None and (node is base[0] or _is_whole(meta, base[1])):
                found[index] = View(base[0], meta, base[1])
    return found


def _is_whole(meta: torch.Tensor, base: torch.Tensor) -> bool:
    """Whether two tensors in the same memory have the same elements in row-major order."""
    alike = meta.dtype == base.dtype and meta.is_conj() == base.is_conj() and meta.is_neg() == base.is_neg()
    static = not has_symbols(meta) and not has_symbols(base)
    return alike and static and meta.numel() == base.numel() and meta.is_contiguous() and base.is_contiguous()


def has_memory(meta: Meta) -> TypeGuard[torch.Tensor]:
    """Whether this describes a tensor whose elements are in memory, one after another: those of sparse ones are not,
    and those on `meta` nowhere."""
    return isinstance(meta, torch.Tensor) and meta.layout is torch.strided and not is_on_meta(meta)


def is_on_meta(meta: object) -> TypeGuard[torch.Tensor]:
    """Whether this describes a tensor on PyTorch's device `meta`, which has no elements."""
    return isinstance(meta, torch.Tensor) and meta.device.type == "meta"


def memory_of(meta: torch.Tensor) -> int:
    """Returns the identity of the memory of a fake tensor."""
    return meta.untyped_storage()._cdata
