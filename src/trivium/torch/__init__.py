"""Trivium as a compiler of PyTorch: `torch.compile(model, backend="trivium")`, found through its entry point.

AOTAutograd turns what Dynamo captures into functional graphs of aten ops, forward and backward; each becomes a module
and a native function. Tensors are passed in and out without a copy.

A graph with symbolic sizes is compiled for the first two combinations of sizes when they occur. Others run in PyTorch
until that has taken about as long as compiling would; then one program is for a whole range of sizes, as those of a
decoder's cache that grows with every token. With `"tiered": False`, each combination is compiled when it occurs, for
itself. The logger `trivium.torch` reports why a graph is compiled again.

Options: `torch.compile(..., options={"threads": 2})` passes them on to `trivium.compile`. With `"freeze": True`,
parameters and buffers are constants of inference programs, which are then compiled again when one of them changes. The
modes of PyTorch's own compiler are accepted, so that code written for it runs: `max-autotune` means the option
`"autotune": True`, the others the default.

An op without a rule, or a custom op, runs in PyTorch between compiled parts of its graph, and the logger warns about it
once; with `"fallback": False`, an error lists all such ops.

A compiled graph does not detect indices that are out of range, or integer divisions by zero. With `"checks": True`, or
with `TRIVIUM_CHECKS=1` in the environment, it raises PyTorch's own error for them after the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter

import torch
import torch._dynamo
import torch._functorch.config
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo.backends.common import aot_autograd

import trivium
from trivium.importers.pytorch.capture import BACKENDS
from trivium.importers.pytorch.decompositions import decompositions
from trivium.importers.pytorch.rnn_layers import keep_recurrent_layers
from trivium.ir.errors import Error
from trivium.ir.stack import with_stack
from trivium.torch.graph import FALLBACK, OWN, CompiledGraph, Input
from trivium.torch.metadata import is_needless
from trivium.torch.replaced_memory import replaces_memory
from trivium.torch.scalars import keeping_tensors

__all__ = ["backend"]

OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(trivium.compile).parameters.items()
    if parameter.kind is Parameter.KEYWORD_ONLY
)
"""The options of `trivium.compile`."""

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

# By default Dynamo keeps modules with an LSTM or GRU out of graphs, and it decides this before it calls a backend.
torch._dynamo.config.allow_rnn = True


@with_stack
def backend(
    module: fx.GraphModule,
    example_inputs: Sequence[Input],
    *,
    options: Mapping[str, object] | None = None,
    **others: object,
) -> Callable[..., object]:
    """The backend that `torch.compile` calls for each graph that Dynamo captures."""
    options = _checked_options(options, others)
    if replaces_memory(module.graph, bool(options.get(FALLBACK, True))):
        return module
    keep_recurrent_layers(module)

    alone: list[CompiledGraph] = []
    forwards: list[CompiledGraph] = []

    def forward(graph: fx.GraphModule, inputs: Sequence[Input]) -> CompiledGraph:
        forwards.append(CompiledGraph(graph, inputs, "forward", options))
        return forwards[-1]

    def backward(graph: fx.GraphModule, inputs: Sequence[Input]) -> CompiledGraph:
        return CompiledGraph(graph, inputs, "backward", options, forward=forwards[-1] if forwards else None)

    def inference(graph: fx.GraphModule, inputs: Sequence[Input]) -> CompiledGraph:
        compiled = CompiledGraph(graph, inputs, "inference", options)
        alone.extend([compiled] if is_needless(module, example_inputs, len(inputs)) else [])
        return compiled

    compile_all = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    # Effects (errors of factorizations) are ordered by tokens inside of a graph, not by further inputs and outputs.
    with torch._functorch.config.patch(unlift_effect_tokens=True), keeping_tensors():
        wrapped = compile_all(module, example_inputs)
    return alone[0].call if alone else wrapped


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
