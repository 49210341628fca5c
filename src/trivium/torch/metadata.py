"""What AOTAutograd knows about the graph that is being compiled: which inputs are parameters, which of them change,
which outputs the user sees, and whether its own function around the graph would do anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import fx
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta
from torch._guards import TracingContext
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from trivium.importers.pytorch.graph import outputs_of

FRESH = OutputType.non_alias, OutputType.unsafe_view_alias
"""The kinds of outputs that are returned as the graph computes them."""
REMADE = OutputType.alias_of_input, OutputType.is_input
"""The kinds that are made from inputs after a run."""


def is_needless(module: fx.GraphModule, given: Sequence[object], taken: int) -> bool:
    """Whether AOTAutograd's function around the inference graph of Dynamo's `module` would do nothing: no input is
    changed, no output is a view of another tensor or has a class of its own, and of the tensors that are `given`, as
    many are taken. Then `torch.compile` calls the compiled graph itself, which saves a microsecond in each call."""
    metadata = _metadata()
    if metadata is None or len(given) != taken or not _is_plain(metadata):
        return False
    # The metadata describe the tensors that a tensor with a class of its own, such as a nested one, consists of.
    outputs = [node.meta.get("example_value") for node in outputs_of(module.graph) if isinstance(node, fx.Node)]
    return not any(map(is_traceable_wrapper_subclass, [*given, *outputs]))


def _is_plain(metadata: ViewAndMutationMeta) -> bool:
    changes = metadata.mutated_inp_runtime_indices or metadata.tokens or metadata.grad_enabled_mutation is not None
    fresh = all(output.output_type in FRESH for output in metadata.output_info) and not metadata.num_intermediate_bases
    return fresh and not changes and not metadata.dynamic_outputs


def frozen_inputs(kind: str) -> tuple[int, ...]:
    """Returns the indices of a graph's inputs that are parameters or buffers, which the graph itself does not change.
    Graphs that have a backward graph have none: training changes their parameters."""
    metadata = _metadata()
    if kind != "inference" or metadata is None:
        return ()
    changed = set(metadata.mutated_inp_runtime_indices)
    return tuple(index for index in metadata.static_input_indices or () if index not in changed)


def changed_inputs(kind: str) -> list[int | None]:
    """Returns the inputs of a graph, by index, whose new elements are its first outputs; None where more than elements
    changes, or where autograd records the change."""
    metadata = _metadata()
    if kind == "backward" or metadata is None:
        return []
    entries = [(index, metadata.input_info[index]) for index in metadata.mutated_inp_runtime_indices]
    return [
        index if x.mutates_data and not x.mutates_metadata and (kind == "inference" or not x.requires_grad) else None
        for index, x in entries
    ]


def views_of_inputs(kind: str) -> frozenset[int]:
    """Returns those outputs of a graph, by index, that PyTorch makes anew: inputs, and views of them. It only looks at
    the sizes and strides of what the graph returns there."""
    metadata = _metadata()
    if kind == "backward" or metadata is None:
        return frozenset()
    first = len(metadata.mutated_inp_runtime_indices)
    return frozenset(first + i for i, output in enumerate(metadata.output_info) if output.output_type in REMADE)


def kept_inputs(kind: str, count: int) -> frozenset[int]:
    """Returns the indices of a graph's inputs, `count` in all, that its outputs may be as they are, instead of copies:
    all inputs of a backward graph, which changes none, and those that a forward graph does not change. Of what changes
    them before the backward graph reads them, PyTorch tells when it runs that graph. Gradients of nested tensors must
    have the offsets that the tensors have: copies would be those of another ragged structure."""
    metadata = _metadata()
    if kind == "backward":
        return frozenset(range(count))
    if kind != "forward" or metadata is None:
        return frozenset()
    return frozenset(range(len(metadata.input_info))) - frozenset(metadata.mutated_inp_runtime_indices)


def visible_outputs(kind: str) -> Callable[[int], bool]:
    """Returns a test for the outputs of a graph that are used outside of its own backward graph; only these need the
    traced layout."""
    if kind != "forward":
        return lambda index: kind == "inference"
    metadata = _metadata()
    count = metadata.num_forward if metadata is not None else None
    return lambda index: count is None or index < count


def _metadata() -> ViewAndMutationMeta | None:
    context = TracingContext.try_get()
    return context.fw_metadata if context is not None else None
