"""Trivium as a compiler of PyTorch: `torch.compile(model, backend="trivium")`, found through its entry point.

AOTAutograd turns what Dynamo captures into functional graphs of aten ops, forward and backward; each becomes a module
and a native function. Tensors are passed in and out without a copy. A graph with symbolic sizes is compiled once for
each combination of sizes that occurs; the logger `trivium.torch` reports why.

Options: `torch.compile(..., options={"threads": 2})` passes them on to `trivium.compile`. With `"freeze": True`,
parameters and buffers are constants of inference programs, which are then compiled again when one of them changes. The
modes of PyTorch's own compiler are accepted, so that code written for it runs: `max-autotune` means the option
`"autotune": True`, the others the default.

An op without a rule, or a custom op, runs in PyTorch between compiled parts of its graph, and the logger warns of it
once; with `"fallback": False` it is an error, which lists all of them.

A compiled graph takes no notice of indices that are out of range, and of integers that are divided by zero. With
`"checks": True`, or with `TRIVIUM_CHECKS=1` in the environment, it raises PyTorch's own error of them after the run.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter
from typing import Any

import torch
import torch._dynamo
import torch._functorch.config
from functorch.compile import min_cut_rematerialization_partition
from torch import fx

# What Inductor uses: `torch.empty` takes longer than all the rest of a small run.
from torch._C._dynamo.guards import _empty_strided_cpu  # pyright: ignore[reportAttributeAccessIssue]
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._prims_common import make_contiguous_strides_for

import trivium
from trivium import journal
from trivium.backends.parts import PartedExecutable
from trivium.executable import Executable
from trivium.importers.pytorch import (
    ImportedGraph,
    InputIndex,
    ResultIndex,
    SizeIndex,
    ViewIndex,
    import_graph,
    is_cut,
    refused_nodes,
    split,
)
from trivium.importers.pytorch.capture import BACKENDS
from trivium.importers.pytorch.context import Meta, Number, Operand
from trivium.importers.pytorch.decompositions import decompositions
from trivium.importers.pytorch.graph import location_of, target_name
from trivium.importers.pytorch.lstm_layers import keep_lstm_layers
from trivium.importers.pytorch.symbols import has_symbols
from trivium.importers.pytorch.types import DTYPES, to_array, to_tensor
from trivium.ir.errors import Error, UnsupportedOpError

Input = torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool | Number
"""An input of a graph of AOTAutograd: sizes are inputs too."""

Described = ResultIndex | SizeIndex | ViewIndex | Operand
Output = torch.Tensor | Operand

logger = logging.getLogger(__name__)

OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(trivium.compile).parameters.items()
    if parameter.kind is Parameter.KEYWORD_ONLY
)
"""The options of `trivium.compile`."""

FREEZE, FALLBACK, CHECKS = "freeze", "fallback", "checks"
OWN = (FREEZE, FALLBACK, CHECKS)
"""The options of this backend."""

MOST_FREEZES = 8
"""How often a graph is compiled for parameters that changed before its parameters become arguments again."""

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

# By default Dynamo keeps modules with an LSTM or GRU out of graphs, and it decides this before it calls a backend.
torch._dynamo.config.allow_rnn = True


def backend(
    module: fx.GraphModule,
    example_inputs: Sequence[Input],
    *,
    options: Mapping[str, object] | None = None,
    **others: object,
) -> Callable[..., object]:
    """The backend that `torch.compile` calls for each graph that Dynamo captures."""
    options = _checked_options(options, others)
    keep_lstm_layers(module)

    def compiler(kind: str) -> Callable[[fx.GraphModule, Sequence[Input]], CompiledGraph]:
        return lambda graph, inputs: CompiledGraph(graph, inputs, kind, options)

    compile_all = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    # Effects (errors of factorizations) are ordered by tokens inside of a graph, not by further inputs and outputs.
    with torch._functorch.config.patch(unlift_effect_tokens=True):
        return compile_all(module, example_inputs)


BACKENDS.add(backend)


def _checked_options(options: Mapping[str, object] | None, others: dict[str, object]) -> Mapping[str, object]:
    """Returns the options for `trivium.compile`, or raises an error for unknown ones."""
    mode = others.pop("mode", None) or "default"
    if mode not in MODES:
        raise Error(f"torch.compile has mode={mode!r} for the backend trivium, expected one of {', '.join(MODES)}")
    if others:
        given = ", ".join(f"{name}={value!r}" for name, value in others.items())
        raise Error(f"torch.compile has {given} for the backend trivium, expected only options and a mode")
    unknown = sorted(set(options or {}) - {*OPTIONS, *OWN})
    if unknown:
        raise Error(
            f"torch.compile has options {', '.join(unknown)} for the backend trivium, expected any of "
            f"{', '.join((*OPTIONS, *OWN))}"
        )
    return {"autotune": mode.startswith("max-autotune"), **(options or {})}


PADDED = "Each combination of sizes is compiled once: inputs that are padded to few sizes are compiled less often."
THAWED = "Without the option freeze, parameters are arguments, and may change."

_numbers = itertools.count(1)

_warned: set[tuple[str, str]] = set()
"""Ops that run in PyTorch, by name and reason; each is told once."""


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
    ):
        # AOTAutograd's mark of a function that takes one list. Its wrappers copy the instance's own attributes.
        self._boxed_call = True
        self.graph = graph
        self.kind = kind
        self.title = f"graph {next(_numbers)} of torch.compile ({kind})"
        self.given_options = options
        self.options: dict[str, Any] = {name: value for name, value in options.items() if name not in OWN}
        self.names = [node.name for node in graph.graph.find_nodes(op="placeholder")]
        self.visible = visible or _visible_outputs(kind)
        self.kept = _kept_inputs(kind) if visible is None else frozenset()
        self.frozen = frozen if frozen is not None else _frozen_inputs(kind) if options.get(FREEZE) else ()
        self.checks_values = bool(options.get(CHECKS, os.environ.get("TRIVIUM_CHECKS", "0") != "0"))
        self.freezes = 0
        self.variants: dict[tuple, Variant | SplitVariant] = {}
        self.is_static = not any(_is_symbolic(given) for given in example_inputs)
        self.only: Variant | SplitVariant | None = None
        if self.is_static and not self.frozen:
            self.only = self._compiled(example_inputs, "its shapes, which are fixed")

    def __call__(self, inputs: list[Input]) -> Sequence[Output]:
        variant = self.only or self._variant(inputs)
        return variant(inputs)

    def _variant(self, inputs: list[Input]) -> Variant | SplitVariant:
        """Returns the program for the sizes of these inputs, and for frozen ones as they are now."""
        sizes = () if self.is_static else _sizes(inputs)
        found = self.variants.get(sizes)
        changed = None if found is None else found.parameters.changed(inputs)
        if found is not None and changed is None:
            return found
        given = self._log(sizes) if changed is None else self._log_change(self.names[changed])
        self.variants[sizes] = self._compiled(inputs, given, PADDED if changed is None else THAWED)
        return self.variants[sizes]

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

    def _log(self, sizes: tuple) -> str:
        """Logs, and returns, why a graph is compiled again: how the sizes differ from the previous ones."""
        if not self.variants:
            logger.info("compiling the %s graph for its first sizes", self.kind)
            return "its first sizes"
        before = next(reversed(self.variants))
        changes = [
            f"{name} has {new}, had {old}"
            for name, new, old in zip(self.names, sizes, before, strict=True)
            if new != old
        ]
        number, reason = len(self.variants) + 1, "; ".join(changes)
        logger.info("compiling the %s graph for sizes number %d: %s", self.kind, number, reason)
        return f"sizes number {number}: {reason}"

    def _compiled(self, inputs: Sequence[Any], given: str, advice: str = "") -> Variant | SplitVariant:
        devices = {given.device.type for given in inputs if isinstance(given, torch.Tensor)} - {"cpu"}
        if devices:
            raise Error(f"the {self.kind} graph has tensors on the device {', '.join(devices)}, expected cpu")
        try:
            imported = import_graph(self.graph, inputs, self.visible, self.frozen, self.checks_values, self.kept)
        except UnsupportedOpError as error:
            cut = refused_nodes(self.graph, error)
            if not cut or not self.given_options.get(FALLBACK, True):
                raise
            journal.compiled(self.title, f"{self.title}, in parts,", given, None, advice)
            self._tell_cut(cut, error)
            return self._split(cut, inputs)
        executable = trivium.compile(imported.module, **self.options)
        journal.compiled(self.title, self.title, given, executable.loaded, advice)
        shown = zip(imported.outputs, imported.metas, strict=True)
        layouts = {
            output.index: _layout(meta)
            for index, (output, meta) in enumerate(shown)
            if self.visible(index) and isinstance(output, ResultIndex)
        }
        return Variant(imported, executable, layouts, Parameters(inputs, self.frozen))

    def _tell_cut(self, cut: Sequence[fx.Node], error: UnsupportedOpError) -> None:
        """Tells which ops run in PyTorch, with the lines that call them; the log has each op and reason once."""
        reasons = {op.name: op.reason for op in error.ops}
        for node in cut:
            name, place = target_name(node), location_of(node).describe()
            reason = reasons.get(name) or "it has no rule"
            journal.left(self.title, f"{self.title}: {place} runs in PyTorch, between compiled parts: {reason}.")
            if (name, reason) not in _warned:
                _warned.add((name, reason))
                logger.warning("%s runs in PyTorch, between compiled parts: %s", place, reason)

    def _split(self, cut: Sequence[fx.Node], inputs: Sequence[Any]) -> SplitVariant:
        """Returns the graph as compiled parts, with those nodes between them left to PyTorch."""
        parts = split(self.graph, cut)
        frozen = {self.names[index] for index in self.frozen}
        for name, part in parts.named_children():
            if not is_cut(name):
                assert isinstance(part, fx.GraphModule)
                setattr(parts, name, Part(part, self.kind, self.given_options, frozen))
        return SplitVariant(parts, Parameters(inputs, self.frozen))


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
        given = list(inputs)
        inputs.clear()
        with torch.no_grad():
            return list(self.parts(*given))


class Parameters:
    """Tensors that a program has as constants, as they were when it was compiled."""

    def __init__(self, inputs: Sequence[Input], indices: Sequence[int]):
        # Not weakly: another tensor could get the address, and the version, of one that is gone.
        tensors = {index: x for index in indices if isinstance(x := inputs[index], torch.Tensor)}
        self.indices, self.tensors = list(tensors), list(tensors.values())
        self.states = _states(self.tensors)

    def changed(self, inputs: Sequence[Input]) -> int | None:
        """Returns the index of a tensor that is not the same, or was changed in place; None if there is none. Every
        call asks this about all parameters: hence whole lists."""
        given = [inputs[index] for index in self.indices]
        states = _states(self.tensors)
        if states == self.states and all(map(operator.is_, given, self.tensors)):
            return None
        found = zip(self.indices, given, self.tensors, *states, *self.states, strict=True)
        return next(i for i, x, y, a, b, c, d in found if x is not y or (a, b) != (c, d))


class Variant:
    """The program of a graph for one combination of sizes. Tensors are passed by address. `layouts` maps the indices of
    results that PyTorch does not expect in row-major order to their strides. `parameters` are part of the program."""

    def __init__(
        self,
        imported: ImportedGraph,
        executable: Executable,
        layouts: dict[int, tuple[int, ...] | None],
        parameters: Parameters,
    ):
        self.parameters = parameters
        self.arguments = imported.arguments
        self.draws = imported.draws
        self.checks = imported.checks
        self.loaded = executable.loaded
        self.execute_at = executable.loaded.execute_at
        kinds = [entry.type for entry in executable.signature.results]
        parted = isinstance(executable.loaded, PartedExecutable) or not all(kind.is_static for kind in kinds)
        shapes = [] if parted else [kind.static_shape for kind in kinds]
        dtypes = [] if parted else [DTYPES[kind.element_type] for kind in kinds]
        made = list(zip(shapes, map(make_contiguous_strides_for, shapes), dtypes, strict=True))
        self.results = None if parted else made
        views = [output for output in imported.outputs if isinstance(output, ViewIndex)]
        bases = {view.base.index: _layout(view.view.base_meta) for view in views if isinstance(view.base, ResultIndex)}
        self.layouts = {index: strides for index, strides in {**layouts, **bases}.items() if strides is not None}
        self.seen = {view.base.index for view in views if isinstance(view.base, InputIndex)}
        self.outputs = imported.outputs
        numbers = [output.index if isinstance(output, ResultIndex) else -1 for output in self.outputs]
        self.returns_results = numbers == list(range(len(shapes))) and not self.layouts and not self.checks

    def __call__(self, inputs: list[Any]) -> Sequence[Output]:
        given = [
            x if x.is_contiguous() and not x.is_conj() and not x.is_neg() else _plain(x)
            for x in map(inputs.__getitem__, self.arguments)
        ]
        seen = {index: inputs[index] for index in self.seen} if self.seen else {}
        inputs.clear()
        if self.draws:
            given.append(draw_state())
        made = self._executed(given)
        if self.returns_results:
            return made
        for index, verify in self.checks.items():
            verify(made[index])
        for index, strides in self.layouts.items():
            made[index] = _laid_out(made[index], strides)
        return [self._output(output, made, seen) for output in self.outputs]

    def _executed(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs the program. If its extents follow from its data, results have shapes only afterwards."""
        if self.results is None:
            return [to_tensor(array) for array in self.loaded.execute(*map(to_array, given))]
        made = [_empty_strided_cpu(*result) for result in self.results]
        self.execute_at([tensor.data_ptr() for tensor in (*given, *made)])
        return made

    def _output(self, output: Described, made: list[torch.Tensor], seen: dict[int, torch.Tensor]) -> Output:
        """Returns an output of the graph: a result, a view of a result or of an input, or a constant."""
        if isinstance(output, ViewIndex):
            place = output.base
            return output.view.of(seen[place.index] if isinstance(place, InputIndex) else made[place.index])
        if isinstance(output, SizeIndex):
            return int(made[output.index])
        return made[output.index] if isinstance(output, ResultIndex) else output


def _frozen_inputs(kind: str) -> tuple[int, ...]:
    """Returns the indices of a graph's inputs that are parameters or buffers, which the graph itself does not change.
    Graphs that have a backward graph have none: training changes their parameters."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if kind != "inference" or metadata is None:
        return ()
    changed = set(metadata.mutated_inp_runtime_indices)
    return tuple(index for index in metadata.static_input_indices or () if index not in changed)


def _kept_inputs(kind: str) -> frozenset[int]:
    """Returns the indices of a forward graph's inputs that its backward graph may have as they are, instead of a copy:
    those that the graph does not change. Of what changes them later, PyTorch tells when it runs the backward graph."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if kind != "forward" or metadata is None:
        return frozenset()
    return frozenset(range(len(metadata.input_info))) - frozenset(metadata.mutated_inp_runtime_indices)


def _states(tensors: Sequence[torch.Tensor]) -> tuple[list[int], list[int]]:
    """Returns what differs after a change of the memory, and after one in place. Tensors of inference mode count no
    changes."""
    return [x.data_ptr() for x in tensors], [-1 if x.is_inference() else x._version for x in tensors]


def _sizes(inputs: Sequence[Input]) -> tuple:
    return tuple(tuple(given.shape) if isinstance(given, torch.Tensor) else given for given in inputs)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with its elements in row-major order in memory, without lazy conjugation or negation."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def draw_state() -> torch.Tensor:
    """Draws a state for the program's generator from PyTorch's: different at each call, reproducible by seed."""
    return torch.empty(2, dtype=torch.int64, device="cpu").random_()


def _visible_outputs(kind: str) -> Callable[[int], bool]:
    """Returns a test for the outputs of a graph that are used outside of its own backward graph; only these need the
    traced layout."""
    if kind != "forward":
        return lambda index: kind == "inference"
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    count = metadata.num_forward if metadata is not None else None
    return lambda index: count is None or index < count


def _layout(meta: Meta) -> tuple[int, ...] | None:
    """Returns the strides of an output, or `None` for row-major order."""
    if not isinstance(meta, torch.Tensor) or has_symbols(meta) or meta.is_contiguous():
        return None
    return tuple(int(stride) for stride in meta.stride())


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Returns `tensor` with the given strides; repeated elements (stride 0) are in memory once."""
    once = tensor[tuple(slice(None) if stride else slice(1) for stride in strides)]
    return torch.empty_strided(once.shape, strides, dtype=tensor.dtype).copy_(once).expand(tensor.shape)


def _is_symbolic(given: Input) -> bool:
    if isinstance(given, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in given.shape)
    return isinstance(given, torch.SymInt | torch.SymFloat | torch.SymBool)
