"""Compares the import of a PyTorch model with PyTorch itself, node by node: each node of the exported graph is imported
alone, and evaluated on the values that PyTorch computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from trivium.debug.differences import difference
from trivium.debug.parting import Parting
from trivium.importers.pytorch import import_module
from trivium.importers.pytorch.graph import location_of
from trivium.ir.interpreter import evaluate


def reference_of(model: torch.nn.Module, args: Sequence[object]) -> list[np.ndarray]:
    """Returns PyTorch's own results."""
    with torch.no_grad():
        return [array_of(value) for value in _tensors(model(*args))]


def first_wrong_node(model: torch.nn.Module, args: Sequence[object], tolerance: float | None = None) -> Parting | None:
    """Returns the first node whose import differs from PyTorch; `None` if there is none."""
    program = torch.export.export(model, tuple(args), strict=False).run_decompositions()
    comparison = _Comparison(program.graph_module, tolerance)
    state = {**program.state_dict, **program.constants}
    signature = program.graph_signature
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    given = iter(tree_leaves(args))
    placeholders = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    with torch.no_grad():
        comparison.run(*[state[names[name]] if name in names else next(given) for name in placeholders])
    return comparison.found


class _Comparison(fx.Interpreter):
    """Runs a graph, and compares each node until one differs."""

    def __init__(self, graph: fx.GraphModule, tolerance: float | None):
        super().__init__(graph)
        self.tolerance = tolerance
        self.found: Parting | None = None

    def run_node(self, n: fx.Node) -> object:
        result = super().run_node(n)
        if self.found is None and n.op == "call_function" and _tensors(result):
            self.found = self._compared(n, result)
        return result

    def _compared(self, node: fx.Node, result: object) -> Parting | None:
        alone, values = _alone(node, self.env)
        ours = evaluate(import_module(alone, values), *[array_of(value) for value in values])
        for index, (mine, theirs) in enumerate(zip(ours, _tensors(result), strict=False)):
            found = difference(mine, array_of(theirs), self.tolerance)
            if found is not None:
                text = node.format_node() or str(node)
                return Parting(text, location_of(node).describe(), index, found, "importing from PyTorch")
        return None


def _alone(node: fx.Node, env: Mapping[fx.Node, object]) -> tuple[fx.GraphModule, list[object]]:
    """Returns a module of one node, and the tensors that it takes; all other operands are constants in it."""
    graph = fx.Graph()
    values: list[object] = []

    def operand(source: fx.Node) -> object:
        value = env[source]
        if not isinstance(value, torch.Tensor):
            return value
        values.append(value)
        return graph.placeholder(f"operand{len(values)}")

    known: dict[fx.Node, Any] = {source: operand(source) for source in node.all_input_nodes}
    arguments = fx.map_arg(node.args, known.__getitem__)
    keywords = fx.map_arg(node.kwargs, known.__getitem__)
    graph.output(graph.create_node("call_function", node.target, arguments, keywords))
    return fx.GraphModule(torch.nn.Module(), graph), values


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def array_of(value: object) -> np.ndarray:
    """Returns a tensor as an array, which shares its memory."""
    assert isinstance(value, torch.Tensor)
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype is torch.bfloat16:
        import ml_dtypes

        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()
