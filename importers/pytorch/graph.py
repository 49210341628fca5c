"""The loop over an FX graph: it reads a node's operands, binds them to its op's schema, calls the rule, and keeps what
the rule returns."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import sympy
import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

from trivium.importers.common import GraphImporter, place
from trivium.importers.extents import Extent
from trivium.importers.pytorch.aliases import is_on_meta
from trivium.importers.pytorch.context import Context, Meta, Number, Operand, Rule, bind, rule
from trivium.importers.pytorch.symbols import has_symbols, symbolic
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.location import Location

# Arithmetic on sizes, and selection among results: done during import.
_PYTHON = {
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow),
    *(operator.neg, operator.getitem, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.and_, operator.or_, operator.not_, math.ceil, math.floor, math.trunc, math.sqrt),
    *(torch.sym_int, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_ite, torch.sym_not, torch.sym_sum),
}
_TORCH = str(Path(torch.__file__).parent)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class GraphModuleImporter(GraphImporter[fx.Node, Context]):
    """Converts the nodes of an FX graph of aten ops. `metas` describes each node, with concrete sizes; without it the
    nodes' own `meta["val"]` does."""

    def __init__(
        self,
        emit: Context,
        values: Mapping[fx.Node, Operand],
        metas: Mapping[fx.Node, Meta] | None = None,
        graph: str = "main",
    ):
        super().__init__(emit, graph)
        emit.enter = _enter
        self.values: dict[fx.Node, Operand] = dict(values)
        self.metas = metas

    def name_of(self, node: fx.Node) -> str:
        return target_name(node)

    def rule_of(self, node: fx.Node) -> Rule | None:
        return node.target if node.target in _PYTHON else rule.find(target_name(node))  # type: ignore[return-value]

    def location_of(self, node: fx.Node) -> Location:
        return location_of(node)

    def inner_nodes(self, node: fx.Node) -> list[fx.Node]:
        sources = [source for source in node.all_input_nodes if source.op == "get_attr"]
        graphs = (_of_module(node.graph.owning_module, source) for source in sources)
        return [inner for graph in graphs if isinstance(graph, fx.GraphModule) for inner in _calls(graph.graph)]

    def describe(self, node: fx.Node) -> str:
        return node.format_node() or str(node)

    def convert(self, node: fx.Node, rule: Rule) -> None:
        size = symbolic(meta := self.meta(node))
        if size is not None and node.target is not torch.ops.aten._local_scalar_dense.default:
            self.values[node] = self._size(size, meta)
            return
        if not self._has_open_sizes(node):
            self._convert(node, rule)
            return
        try:
            self._convert(node, rule)
        except UnsupportedOpError:
            raise
        except (ArithmeticError, AssertionError, AttributeError, Error, LookupError, TypeError, ValueError) as error:
            reason = f"it does not support dynamic sizes, which `shapes` can fix ({type(error).__name__}: {error})"
            found = [Unsupported(target_name(node), reason=reason)]
            raise UnsupportedOpError("1 op is not supported:", found) from error

    def _size(self, expression: sympy.Basic, meta: Meta) -> Extent | Value | bool:
        """Returns a number that follows from the sizes of inputs, or a condition on sizes."""
        emit = self.emit
        if isinstance(meta, torch.SymBool):
            return emit.symbols.condition(emit, expression)
        if isinstance(meta, torch.SymFloat):
            return emit.symbols.float_of(emit, expression)
        assert isinstance(meta, torch.SymInt)
        return emit.symbols.extent(emit, meta)

    def _has_open_sizes(self, node: fx.Node) -> bool:
        return any(has_symbols(self.meta(each)) for each in (node, *node.all_input_nodes))

    def _convert(self, node: fx.Node, rule: Rule) -> None:
        arguments = fx.map_arg(node.args, self.read)
        keywords = fx.map_arg(node.kwargs, self.read)
        if node.target in _PYTHON:
            self.values[node] = rule(*arguments, **keywords)
            return
        self._enter(node)
        if is_on_meta(self.meta(node)):  # it has no elements that anything could read
            self.values[node] = self.emit.full(self.emit.shape, 0, self.emit.result.element_type)
            return
        if isinstance(node.target, OpOverload):
            arguments, keywords = bind(node.target, rule, arguments, keywords, self.emit)
        self.values[node] = results = rule(self.emit, *arguments, **keywords)
        listed = results if isinstance(results, tuple | list) else (results,)
        self.emit.require_types(listed)
        for result, meta in zip(listed, self.emit.described, strict=False):
            self.emit.symbols.bind(self.emit, result, meta)

    def read(self, node: fx.Node) -> Any:
        """Returns the result of converting a node: a value, a number, or a tuple of them."""
        return self.values[node]

    def meta(self, node: fx.Node) -> Meta:
        """Returns PyTorch's description of a node: fake tensors, or numbers."""
        return node.meta.get("val") if self.metas is None else self.metas[node]

    def _enter(self, node: fx.Node) -> None:
        """Informs the context about the node under conversion."""
        emit = self.emit
        emit.describe(target_name(node), self.meta(node))
        emit.origin = str(node.meta.get("original_aten", ""))
        picked = [user.args[1] if user.target is operator.getitem else None for user in node.users]
        emit.used = tuple(None in picked or index in picked for index in range(len(emit.results)))
        emit.metas, emit.open_metas = {}, {}
        for source in node.all_input_nodes:
            value, meta = self.values.get(source), self.meta(source)
            if isinstance(value, Value) and isinstance(meta, torch.Tensor):
                (emit.open_metas if has_symbols(meta) else emit.metas)[value] = meta


def require_rules(graph: fx.Graph) -> None:
    """Rejects a graph with ops that have no rule, and lists them all."""
    GraphModuleImporter(Context(Block()), {}).require_rules(_calls(graph))


def _calls(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function"]


def convert_graph(
    module: fx.GraphModule,
    emit: Context,
    values: Mapping[fx.Node, Operand],
    metas: Mapping[fx.Node, Meta] | None = None,
    outputs: Sequence[Operand | fx.Node] | None = None,
) -> list[Operand]:
    """Converts a graph whose placeholders have `values`. Returns the results for its outputs, or for the given ones."""
    attributes = {node: _attribute(module, node, emit) for node in module.graph.find_nodes(op="get_attr")}
    importer = GraphModuleImporter(emit, {**values, **attributes}, metas)
    importer.convert_all(_calls(module.graph))
    wanted = outputs_of(module.graph) if outputs is None else outputs
    return [importer.read(given) if isinstance(given, fx.Node) else given for given in wanted]


def _enter(emit: Context, module: fx.GraphModule, operands: Sequence[Operand]) -> list[Operand]:
    given = dict(zip(module.graph.find_nodes(op="placeholder"), operands, strict=True))
    # Sizes may have other symbols inside of a graph, and their values are those of its block.
    outside = dict(emit.symbols.values)
    for node, operand in given.items():
        emit.symbols.bind(emit, operand, node.meta.get("val"))
    found = convert_graph(module, emit, given)
    emit.symbols.values = outside
    return found


def _attribute(module: fx.GraphModule, node: fx.Node, emit: Context) -> Operand:
    """Returns an attribute of the node's module: a tensor, as a constant, or a graph."""
    found = _of_module(module, node)
    return emit.constant(found, node.name) if isinstance(found, torch.Tensor) else found


def _of_module(module: fx.GraphModule | None, node: fx.Node) -> torch.Tensor | fx.GraphModule:
    return operator.attrgetter(str(node.target))(module)


def outputs_of(graph: fx.Graph) -> Sequence[fx.Node | Number | None]:
    """Returns what a graph returns: nodes, numbers, `None`."""
    returned = graph.output_node().args[0]
    return (returned,) if isinstance(returned, fx.Node) else cast(Sequence[fx.Node | Number | None], returned)


def target_name(node: fx.Node) -> str:
    """Returns the name of a node's op, under which rules are registered."""
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        return str(target)
    if isinstance(target, HigherOrderOperator):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", "") or ""
    name = getattr(target, "__name__", str(target))
    return f"{module.lstrip('_')}.{name}" if module else name


def location_of(node: fx.Node) -> Location:
    """Returns the user's line, from the innermost frame of the recorded stack that is not PyTorch's own, and the op."""
    frames = [frame.groups() for frame in _FRAME.finditer(node.meta.get("stack_trace") or "")]
    if not frames:
        return place(target_name(node), path=_module_path(node))
    outside = [frame for frame in frames if not frame[0].startswith((_TORCH, "<"))]
    file, line, function = (outside or frames)[-1]
    return place(target_name(node), file, int(line), function, _module_path(node))


def _module_path(node: fx.Node) -> str:
    """Returns the submodule that a node was traced in: `encoder.layer.0`. Dynamo has `L['self'].encoder.layer[0]`."""
    *_, (path, _) = (node.meta.get("nn_module_stack") or {"": ("", None)}).values()
    return re.sub(r"\[['\"]?([^]'\"]*)['\"]?\]", r".\1", path.removeprefix("L['self']")).strip(".")
