"""The first tier of graphs with symbolic sizes: sizes that may never occur again, such as those of a cache that grows
with every token, run in PyTorch, op by op, until that has taken about as long as compiling them would."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

from trivium.backends.estimates import Costs
from trivium.backends.recent import Recent
from trivium.importers.pytorch.aliases import has_memory, memory_of
from trivium.importers.pytorch.graph import outputs_of

ATEN = torch.ops.aten
VIEWS = ATEN.view.default, ATEN._unsafe_view.default
ADDRESSED = ATEN.as_strided, ATEN.as_strided_copy, ATEN.as_strided_scatter

TRACED_OTHERWISE = ATEN.mkldnn_rnn_layer, ATEN._ctc_loss, ATEN._ctc_loss_backward
"""Ops whose results are others in PyTorch than in the graph: they have them in a form for our compiler."""

SAVED_ALIKE = (
    *(ATEN.native_layer_norm, ATEN.native_group_norm, ATEN.native_batch_norm, ATEN._native_batch_norm_legit),
    *(ATEN._native_batch_norm_legit_functional, ATEN.native_dropout, ATEN.var_mean, ATEN.nll_loss_forward),
    *(ATEN._scaled_dot_product_flash_attention_for_cpu, ATEN.max_pool2d_with_indices),
    *(ATEN.max, ATEN.min, ATEN.sort, ATEN.topk, ATEN.aminmax),
)
"""Ops with several results, all of which are the same in PyTorch and in a program, so that the backward graph may read
either. Of other ops, a program may return what only its own backward program reads."""

MOST_WAITING = 4096
"""How many combinations of sizes a graph remembers without having been compiled for them."""


class InPyTorch:
    """A graph that runs in PyTorch, and how often it has run with the same sizes."""

    def __init__(self, tier: FirstTier):
        self.tier = tier
        self.runs = 0

    def __call__(self, inputs: list[Any]) -> list[Any]:
        self.runs += 1
        self.tier.runs += 1
        return run_in_pytorch(self.tier.graph, inputs)


def run_in_pytorch(graph: fx.GraphModule, inputs: list[Any]) -> list[Any]:
    """Runs a graph of AOTAutograd op by op, on a list of inputs, which it empties."""
    given = list(inputs)
    inputs.clear()
    # The graph has the conversions of autocast.
    with torch.no_grad(), torch._C._DisableAutocast():
        return list(graph(*given))


class FirstTier:
    """The sizes for which a graph has not been compiled yet, though they have occurred; and how often it has run in
    PyTorch."""

    def __init__(self, graph: fx.GraphModule):
        self.traced = graph
        self.runs = 0
        self.waiting: Recent[tuple, InPyTorch] = Recent(MOST_WAITING)

    @functools.cached_property
    def graph(self) -> fx.GraphModule:
        return _of_any_layout(self.traced)

    def get(self, sizes: tuple, costs: Costs) -> InPyTorch | None:
        """Returns the graph for these sizes, if it has run for less time than compiling takes. The costs of a program
        for other sizes serve as an estimate for these."""
        found = self.waiting.get(sizes)
        if found is None:
            found = InPyTorch(self)
            self.waiting.put(sizes, found)
        return found if found.runs < most_runs(costs) else None

    def is_over(self, costs: Costs) -> bool:
        """Whether the graph has run for as long as compiling takes, with whatever sizes."""
        return self.runs >= most_runs(costs)


def most_runs(costs: Costs) -> float:
    """Returns how many runs in PyTorch take as long as compiling: none of a graph without ops."""
    run = 1e-5 * costs.ops + costs.running
    return costs.compiling / run if run else 0.0


def has_first_tier(graph: fx.GraphModule, kind: str, kept: Collection[int] = ()) -> bool:
    """Whether a graph may run both ways by turns. What a forward graph saves must then be the same, and not the memory
    of inputs that change before its backward graph reads it: of its inputs, `kept` do not. A program saves it in
    row-major order, whatever order its backward graph was traced with, which therefore must not take elements by
    their addresses."""
    targets = {node.target for node in graph.graph.nodes if node.op == "call_function"}
    packets = {getattr(target, "overloadpacket", None) for target in targets}
    if packets & set(TRACED_OTHERWISE):
        return False
    if kind == "forward":
        return all(map(_is_saved_alike, targets)) and not _returns_inputs(graph.graph, kept)
    return kind != "backward" or not packets & set(ADDRESSED)


def _returns_inputs(graph: fx.Graph, kept: Collection[int]) -> bool:
    """Whether a graph returns the memory of other inputs than those."""
    inputs = [node for index, node in enumerate(graph.find_nodes(op="placeholder")) if index not in kept]
    outputs = [node for node in outputs_of(graph) if isinstance(node, fx.Node)]
    theirs, ours = (
        {memory_of(meta) for node in nodes if has_memory(meta := node.meta.get("val"))} for nodes in (inputs, outputs)
    )
    return bool(theirs & ours)


def _is_saved_alike(target: object) -> bool:
    if not isinstance(target, OpOverload):
        return not isinstance(target, HigherOrderOperator)
    return len(target._schema.returns) < 2 or target.overloadpacket in SAVED_ALIKE


def _of_any_layout(graph: fx.GraphModule) -> fx.GraphModule:
    """Returns a graph whose inputs may have other layouts than when it was traced, which had allowed a view."""
    changed = fx.GraphModule(graph, copy.deepcopy(graph.graph))
    for node in changed.graph.nodes:
        if node.target in VIEWS:
            node.target = ATEN.reshape.default
    changed.recompile()
    return changed
