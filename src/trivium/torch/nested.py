"""Sizes of ragged dimensions. The size of a nested tensor's ragged dimension is no number in PyTorch, but a name such
as `j1`, which is new for each ragged structure. AOTAutograd passes it to a graph beside the tensors that the nested
tensor consists of, and hardly ever reads it there."""

from __future__ import annotations

import torch
from torch import fx


def is_ragged(size: object) -> bool:
    """Whether a size is that of a ragged dimension."""
    return isinstance(size, torch.SymInt) and size.node.is_nested_int()


def ragged_inputs(graph: fx.Graph) -> tuple[list[int], bool]:
    """Returns which inputs of a graph are sizes of ragged dimensions, and whether it reads one of them."""
    placeholders = list(enumerate(graph.find_nodes(op="placeholder")))
    ragged = {index: node for index, node in placeholders if is_ragged(node.meta.get("val"))}
    return list(ragged), any(node.users for node in ragged.values())
