"""Graphs with ops that cannot be converted, as parts that can and parts that cannot, in an order in which they run."""

from __future__ import annotations

import operator
from collections.abc import Collection

import torch
from torch import fx
from torch.fx.passes.split_module import split_module
from torch.utils import _pytree as pytree

from trivium.importers.pytorch.context import Context
from trivium.importers.pytorch.graph import GraphModuleImporter
from trivium.importers.pytorch.types import ELEMENT_TYPES
from trivium.ir.core import Block
from trivium.ir.errors import UnsupportedOpError


def refused_nodes(module: fx.GraphModule, error: UnsupportedOpError) -> list[fx.Node]:
    """Returns the nodes because of which the conversion of a graph has failed: those without a rule, or with elements
    that the language does not have, or the one whose rule has refused it. A node stands for the graphs inside it."""
    importer = GraphModuleImporter(Context(Block()), {})
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    tried = {node: [node, *importer.all_inner_nodes(node)] for node in calls}
    without = [
        node for node in calls if any(importer.rule_of(each) is None for each in tried[node]) or _is_foreign(node)
    ]
    return without or [node for node in calls if error.inside in [importer.describe(each) for each in tried[node]]]


def _is_foreign(node: fx.Node) -> bool:
    """Whether a node takes or makes a tensor whose elements the language does not have, or that is sparse."""
    values = pytree.tree_leaves([each.meta.get("val") for each in (node, *node.all_input_nodes)])
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return any(x.dtype not in ELEMENT_TYPES or x.layout is not torch.strided for x in tensors)


def split(module: fx.GraphModule, cut: Collection[fx.Node]) -> fx.GraphModule:
    """Returns a module that calls the parts of a graph, its submodules, one after another. As few parts as there are
    changes between both kinds on any path through the graph."""
    levels: dict[fx.Node, int] = {}

    def level(node: fx.Node) -> int:
        if node not in levels:
            levels[node] = _level(node, levels, node in cut)
        return levels[node]

    for node in module.graph.nodes:
        level(node)
    return split_module(module, module, level, keep_original_order=False)


def is_cut(name: str) -> bool:
    """Whether a part, by its name in the module, is one that cannot be converted."""
    return int(name.removeprefix("submod_")) % 2 == 1


def _level(node: fx.Node, levels: dict[fx.Node, int], is_cut: bool) -> int:
    """Returns the part of a node: even for what can be converted, odd for what cannot."""
    if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        return levels[node.args[0]]  # tuples are not passed between parts
    before = max((levels[source] for source in node.all_input_nodes), default=0)
    return before if before % 2 == is_cut else before + 1
