"""AOTAutograd's graphs as compiled functions: one program for a combination of sizes, or for ranges of them, in several
parts if an op has no rule."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import sympy
import torch
from torch import fx
from torch.autograd import forward_ad

import trivium
from trivium import journal
from trivium.backends.estimates import Costs
from trivium.backends.ranges import Ranges, Sizes, shown
from trivium.backends.recent import FULL, MOST_PROGRAMS, Recent
from trivium.backends.specializing import COMPILED_AT_ONCE
from trivium.executable import Executable
from trivium.importers.pytorch import ImportedGraph, ResultIndex, import_graph, is_cut, refused_nodes, split
from trivium.importers.pytorch.context import Number
from trivium.importers.pytorch.graph import location_of, target_name
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.func import Module
from trivium.ir.location import file_locations
from trivium.ir.stack import with_stack
from trivium.torch.cuda import CPU, CudaVariant, device_of, options_for
from trivium.torch.in_place import request_places
from trivium.torch.layouts import take_layouts
from trivium.torch.metadata import changed_inputs, frozen_inputs, kept_inputs, views_of_inputs, visible_outputs
from trivium.torch.nested import ragged_inputs
from trivium.torch.parameters import Parameters, freezable
from trivium.torch.ranges import OpenGraph, RangeVariant, compile_for
from trivium.torch.tiers import FirstTier, InPyTorch, has_first_tier, run_in_pytorch
from trivium.torch.variant import Output, Variant

Input = torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool | Number
"""An input of a graph of AOTAutograd: sizes are inputs too."""

FREEZE, FALLBACK, CHECKS, PROGRAMS, TIERED = "freeze", "fallback", "checks", "programs", "tiered"
OWN = (FREEZE, FALLBACK, CHECKS, PROGRAMS, TIERED)
"""The options of this backend, which are not those of `trivium.compile`."""

MOST_FREEZES = 8
"""How often a graph is compiled for parameters that changed before its parameters become arguments again."""

CODE_OF_AN_OP = 256
"""The bytes of machine code of an op, if nothing is known of a graph's program."""

PADDED = "Each combination of sizes is compiled once. To compile less often, pad inputs to a few sizes."
WAITING = (
    "%s is compiled for %d combinations of sizes. Further ones run in PyTorch until that has taken about as long as "
    "compiling would; then a program is for a range of sizes, where that is possible. With the option tiered=False, "
    "each is compiled at once."
)
READS_RAGGED = "%s reads the size of a ragged dimension, which is no number"
THAWED = "To avoid this, leave the option freeze out: then parameters are arguments, and may change."

logger = logging.getLogger("trivium.torch")

_numbers = itertools.count(1)

_warned: set[tuple[str, str]] = set()
"""Ops that run in PyTorch, by name and reason; each is reported once."""


class CompiledGraph:
    """A graph of AOTAutograd as a function from a list of tensors and sizes, which it empties, to a list of results."""

    def __init__(
        self,
        graph: fx.GraphModule,
        example_inputs: Sequence[Input],
        kind: str,
        options: Mapping[str, object],
        visible: Callable[[int], bool] | None = None,
        frozen: Sequence[int] | None = None,
        forward: CompiledGraph | None = None,
    ):
        # AOTAutograd's mark of a function that takes one list. Its wrappers copy the instance's own attributes.
        self._boxed_call = True
        self.graph = graph
        self.kind = kind
        self.title = f"graph {next(_numbers)} of torch.compile ({', '.join([kind, *_first_line(graph)])})"
        self.given_options = options
        self.options: dict[str, Any] = {name: value for name, value in options.items() if name not in OWN}
        self.names = [node.name for node in graph.graph.find_nodes(op="placeholder")]
        self.ragged, reads_ragged = ragged_inputs(graph.graph)
        self.visible = visible or visible_outputs(kind)
        self.kept = kept_inputs(kind, len(self.names)) if visible is None else frozenset()
        self.changed = changed_inputs(kind) if visible is None else []
        self.views = views_of_inputs(kind) if visible is None else frozenset()
        self.frozen = frozen if frozen is not None else frozen_inputs(kind) if options.get(FREEZE) else ()
        self.checks_values = bool(options.get(CHECKS, os.environ.get("TRIVIUM_CHECKS", "0") != "0"))
        self.freezes = 0
        most = options.get(PROGRAMS, MOST_PROGRAMS)
        if not isinstance(most, int) or most < 1:
            raise Error(f"the option {PROGRAMS} has {most!r}, expected a positive number")
        self.variants: Recent[tuple, Variant | SplitVariant] = Recent(most)
        self.is_static = not any(_is_symbolic(given) for given in example_inputs)
        tiered = not self.is_static and bool(options.get(TIERED, True))
        in_pytorch = tiered and has_first_tier(graph, kind, self.kept)
        if kind == "backward":
            in_pytorch &= forward is not None and forward.first_tier is not None
        self.first_tier = FirstTier(graph) if in_pytorch else None
        self.tiered = tiered
        self.ops = sum(node.op == "call_function" for node in graph.graph.nodes)
        self.open = OpenGraph(graph) if tiered else None
        self.ranges: Ranges[RangeVariant] | None = Ranges(most) if self.open and self.open.is_known else None
        self.only: Callable[[list[Any]], Sequence[Output]] | None = None
        if reads_ragged:
            self._leave(READS_RAGGED % self.title)
            self.only = partial(run_in_pytorch, graph)
        elif self.is_static and not self.frozen:
            self.only = self._compiled(example_inputs, "the shapes of its inputs, which are fixed")

    def __call__(self, inputs: list[Input]) -> Sequence[Output]:
        if forward_ad._current_level >= 0:
            _refuse_tangents(inputs)
        if self.only is not None:
            return self.only(inputs)
        for index in self.ragged:
            inputs[index] = 0
        return self._variant(inputs)(inputs)

    def call(self, *inputs: Input) -> Sequence[Output]:
        """Runs the graph on inputs that are given one by one."""
        return self(list(inputs))

    def _variant(self, inputs: list[Input]) -> Variant | SplitVariant | InPyTorch:
        """Returns the program for the sizes of these inputs, and for frozen ones as they are now."""
        sizes = () if self.is_static else _sizes(inputs)
        found = self.variants.get(sizes)
        changed = None if found is None else found.parameters.changed(inputs)
        if found is not None and changed is None:
            return found
        if found is None and (further := self._further(sizes, inputs)):
            return further
        if changed is None:
            self._log(sizes)
            given = f"inputs of {_shown(sizes)}"
        else:
            given = self._log_change(self.names[changed])
        found = self._compiled(inputs, given, PADDED if changed is None else THAWED)
        if self.variants.put(sizes, found):
            logger.warning(FULL, self.title, self.variants.most)
        if self.open is not None and self.ranges is not None:
            self.ranges.see_exact(self.open.sizes(sizes), self._costs(found))
        return found

    def _further(self, sizes: tuple, inputs: list[Input]) -> Variant | InPyTorch | None:
        """Returns how the graph runs for sizes that are not among the first ones: in PyTorch, until that has taken as
        long as compiling, then as a program for a range of sizes, if there can be one; None if it is to be compiled for
        just these sizes."""
        if not self.tiered or len(self.variants) < COMPILED_AT_ONCE:
            return None
        graph, ranges = self.open, self.ranges
        if graph is not None and ranges is not None and (found := ranges.find(graph.sizes(sizes))) is not None:
            return found
        costs = self._costs(self.variants.last)
        if graph is not None and ranges is not None and (self.first_tier is None or self.first_tier.is_over(costs)):
            values = graph.sizes(sizes)
            wanted = graph.allowed(ranges.wanted(values))
            if len(wanted) < 2 or values not in wanted:
                return None
            if (found := self._compiled_for_range(graph, wanted, values, inputs)) is not None:
                ranges.add(found.combinations, found, self._costs(found))
                return found
            self.ranges = None
        if self.first_tier is None:
            return None
        if not self.first_tier.waiting:
            journal.left(self.title, WAITING % (self.title, COMPILED_AT_ONCE))
        return self.first_tier.get(sizes, costs)

    def _costs(self, variant: Variant | SplitVariant | None) -> Costs:
        """Returns the costs of a program of this graph; of one that has none, or runs in parts, those of its ops."""
        if not isinstance(variant, Variant) or variant.results is None:
            return Costs(self.ops, CODE_OF_AN_OP * self.ops, 0, 0)
        return Costs.of(variant.loaded, self.ops)

    def _compiled_for_range(
        self, graph: OpenGraph, combinations: Sequence[Sizes], needed: Sizes, inputs: list[Input]
    ) -> RangeVariant | None:
        """Returns a program for several combinations of sizes, if the graph can have one."""
        try:
            if device_of(f"the {self.kind} graph", zip(self.names, inputs, strict=True)) != CPU:
                raise Error("only programs of the CPU compute with several sizes at once")
            made = self._with_sizes, self.visible, self._program, self.kind
            found = compile_for(graph, combinations, needed, inputs, *made)
        except Error as error:
            logger.info("the %s graph has no programs for ranges of sizes: %s", self.kind, error)
            return None
        told = shown(found.combinations)
        logger.info("compiling the %s graph for %s", self.kind, told)
        journal.compiled(self.title, self.title, told, found.loaded, "")
        return found

    def _leave(self, reason: str) -> None:
        """Logs why a graph runs in PyTorch. It is an error without `fallback`."""
        if not self.given_options.get(FALLBACK, True):
            raise Error(reason)
        logger.warning("%s: it runs in PyTorch.", reason)
        journal.left(self.title, f"{reason}: it runs in PyTorch.")

    def _with_sizes(self, inputs: Sequence[Any], sizes: Mapping[sympy.Symbol, int | None]) -> ImportedGraph:
        return import_graph(self.graph, inputs, self.visible, (), self.checks_values, self.kept, sizes)

    def _program(self, module: Module) -> Executable:
        return trivium.compile(module, **options_for(CPU, self.options))

    def _log_change(self, name: str) -> str:
        """Logs, and returns, why a graph is compiled again for the same sizes."""
        reason = f"the frozen parameter {name}, which has changed"
        self.freezes += 1
        if self.freezes < MOST_FREEZES:
            logger.info("compiling the %s graph again: the frozen parameter %s has changed", self.kind, name)
            return reason
        logger.warning(
            "frozen parameters of the %s graph have changed %d times, %s the last: they are arguments from now on",
            *(self.kind, self.freezes, name),
        )
        self.frozen = ()
        return reason

    def _log(self, sizes: tuple) -> None:
        """Logs why a graph is compiled again: how the sizes differ from the previous ones."""
        if not self.variants:
            logger.info("compiling the %s graph for its first sizes", self.kind)
            return
        *_, before = self.variants
        changes = [
            f"{name} has {new}, had {old}"
            for name, new, old in zip(self.names, sizes, before, strict=True)
            if new != old
        ]
        number = len(self.variants) + 1
        logger.info("compiling the %s graph for sizes number %d: %s", self.kind, number, "; ".join(changes))

    @with_stack
    def _compiled(self, inputs: Sequence[Any], given: str, advice: str = "") -> Variant | SplitVariant:
        title = f"the {self.kind} graph"
        device_of(title, zip(self.names, inputs, strict=True))
        frozen = freezable(inputs, self.frozen)
        try:
            imported = import_graph(self.graph, inputs, self.visible, frozen, self.checks_values, self.kept)
        except UnsupportedOpError as error:
            cut = refused_nodes(self.graph, error)
            if not cut or not self.given_options.get(FALLBACK, True):
                raise
            journal.compiled(self.title, f"{self.title}, in parts,", given, None, advice)
            self._report_cut(cut, error)
            return self._split(cut, inputs, frozen)
        shown = list(zip(imported.outputs, imported.metas, strict=True))
        made = ((f"result {i}", meta) for i, (output, meta) in enumerate(shown) if isinstance(output, ResultIndex))
        device = device_of(title, zip(self.names, inputs, strict=True), made)
        layouts = take_layouts(imported, inputs, self.visible)
        if not self.checks_values:  # Inputs stay as they were if a run ends with PyTorch's error.
            request_places(imported, self.changed, self.views, layouts)
        executable = trivium.compile(imported.module, **options_for(device, self.options))
        journal.compiled(self.title, self.title, given, executable.loaded, advice)
        operands = imported, executable, layouts, Parameters(inputs, frozen), self.kind
        return Variant(*operands) if device == CPU else CudaVariant(*operands, device)

    def _report_cut(self, cut: Sequence[fx.Node], error: UnsupportedOpError) -> None:
        """Tells which ops run in PyTorch, with the lines that call them; the log has each op and reason once."""
        reasons = {op.name: op.reason for op in error.ops}
        for node in cut:
            name, place = target_name(node), location_of(node).describe()
            reason = reasons.get(name) or "it has no rule"
            journal.left(self.title, f"{self.title}: {place} runs in PyTorch, between compiled parts: {reason}.")
            if (name, reason) not in _warned:
                _warned.add((name, reason))
                logger.warning("%s runs in PyTorch, between compiled parts: %s", place, reason)

    def _split(self, cut: Sequence[fx.Node], inputs: Sequence[Any], frozen: Sequence[int]) -> SplitVariant:
        """Returns the graph as compiled parts, with those nodes between them left to PyTorch."""
        parts = split(self.graph, cut)
        names = {self.names[index] for index in frozen}
        for name, part in parts.named_children():
            if not is_cut(name):
                assert isinstance(part, fx.GraphModule)
                setattr(parts, name, Part(part, self.kind, self.given_options, names))
        return SplitVariant(parts, Parameters(inputs, frozen))


class Part(torch.nn.Module):
    """A part of a graph, compiled when it is called first: only then the sizes of its inputs are known, which may be
    computed from the elements of tensors."""

    def __init__(self, graph: fx.GraphModule, kind: str, options: Mapping[str, object], frozen: Collection[str]):
        super().__init__()
        self.frozen = [i for i, node in enumerate(graph.graph.find_nodes(op="placeholder")) if node.name in frozen]
        self.make = lambda inputs: CompiledGraph(graph, inputs, kind, options, lambda _: True, self.frozen)
        self.compiled: CompiledGraph | None = None
        self.has_one_result = isinstance(graph.graph.output_node().args[0], fx.Node)
        self.examples = [node.meta["val"] for node in graph.graph.find_nodes(op="placeholder")]

    def forward(self, *inputs: Any) -> Any:
        if self.compiled is None:
            self.compiled = self.make(self.examples)
        results = self.compiled(list(inputs))
        return results[0] if self.has_one_result else tuple(results)


class SplitVariant:
    """A graph whose parts run one after another, some of them in PyTorch."""

    def __init__(self, parts: fx.GraphModule, parameters: Parameters):
        self.parts, self.parameters = parts, parameters

    def __call__(self, inputs: list[Any]) -> list[Any]:
        return run_in_pytorch(self.parts, inputs)


def _refuse_tangents(inputs: Sequence[Input]) -> None:
    """Rejects inputs of forward-mode differentiation, whose results would lack their tangents."""
    for given in inputs:
        if isinstance(given, torch.Tensor) and forward_ad.unpack_dual(given).tangent is not None:
            raise Error(
                "an input of a compiled graph has a tangent, expected none: compile torch.func.jvp of it instead"
            )


def _sizes(inputs: Sequence[Input]) -> tuple:
    return tuple(tuple(given.shape) if isinstance(given, torch.Tensor) else given for given in inputs)


def _is_symbolic(given: Input) -> bool:
    if isinstance(given, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in given.shape)
    return isinstance(given, torch.SymInt | torch.SymFloat | torch.SymBool)


def _shown(sizes: tuple) -> str:
    """Returns the sizes of tensors for people; of a graph without tensors, those that it is given."""
    shapes = ["x".join(map(str, size)) or "a scalar" for size in sizes if isinstance(size, tuple)]
    return ", ".join(shapes or map(str, sizes))


def _first_line(graph: fx.GraphModule) -> list[str]:
    """Returns the user's line that a graph begins with, if that is known."""
    nodes = (node for node in graph.graph.nodes if node.op == "call_function")
    places = (place for node in nodes for place in file_locations(location_of(node), 1))
    return [place.describe() for place in itertools.islice(places, 1)]
