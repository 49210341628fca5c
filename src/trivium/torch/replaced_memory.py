"""Graphs that give a tensor of their caller other memory, as an assignment to `parameter.data` does. A compiled program
writes to memory that it is given, and AOTAutograd refuses such graphs."""

from __future__ import annotations

import logging

import torch
from torch import fx

from trivium import journal
from trivium.importers.pytorch.graph import location_of
from trivium.ir.errors import Error

logger = logging.getLogger("trivium.torch")


def replaces_memory(graph: fx.Graph, fallback: bool) -> bool:
    """Whether a graph of Dynamo's does that and therefore runs in PyTorch, which is logged. It is an error without
    `fallback`."""
    calls = [*graph.find_nodes(op="call_function", target=torch.Tensor.set_)]
    calls += graph.find_nodes(op="call_method", target="set_")
    place = next((location_of(node).describe() for node in calls if node.args[0].op == "placeholder"), None)
    if place is None:
        return False
    reason = f"{place}: Tensor.set_, or an assignment to `data`, gives a tensor other memory, which a program cannot do"
    if not fallback:
        raise Error(reason)
    logger.warning("%s: the graph runs in PyTorch.", reason)
    journal.left(reason, f"{reason}: the graph runs in PyTorch.")
    return True
