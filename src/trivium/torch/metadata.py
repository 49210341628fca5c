"""What AOTAutograd knows about the graph that is being compiled: which inputs are parameters, which of them change,
which outputs the user sees, and whether its own function around the graph would do anything."""

from __future__ import annotations

from collections.abc import Callable

from torch._functorch._aot_autograd.schemas import OutputType, PlainTensorMeta, ViewAndMutationMeta
from torch._guards import TracingContext

FRESH = OutputType.non_alias, OutputType.unsafe_view_alias
"""The kinds of outputs that are returned as the graph computes them."""


def is_needless(given: int, taken: int) -> bool:
    """Whether AOTAutograd's function around the inference graph would do nothing: no input is changed, no output is a
    view of another tensor or has a class of its own, and of the tensors that are given, as many are taken. Then
    `torch.compile` calls the compiled graph itself, which saves a microsecond in each call."""
    metadata = _metadata()
    return metadata is not None and given == taken and _is_plain(metadata)


def _is_plain(metadata: ViewAndMutationMeta) -> bool:
    changes = metadata.mutated_inp_runtime_indices or metadata.tokens or metadata.grad_enabled_mutation is not None
    fresh = all(output.output_type in FRESH for output in metadata.output_info) and not metadata.num_intermediate_bases
    classes = [*metadata.subclass_inp_meta, *metadata.subclass_fw_graph_out_meta]
    plain = all(isinstance(each, PlainTensorMeta) for each in classes)
    return fresh and plain and not changes and not metadata.dynamic_outputs


def frozen_inputs(kind: str) -> tuple[int, ...]:
    """Returns the indices of a graph's inputs that are parameters or buffers, which the graph itself does not change.
    Graphs that have a backward graph have none: training changes their parameters."""
    metadata = _metadata()
    if kind != "inference" or metadata is None:
        return ()
    changed = set(metadata.mutated_inp_runtime_indices)
    return tuple(index for index in metadata.static_input_indices or () if index not in changed)


def kept_inputs(kind: str) -> frozenset[int]:
    """Returns the indices of a forward graph's inputs that its backward graph may have as they are, instead of a copy:
    those that the graph does not change. Of what changes them later, PyTorch tells when it runs the backward graph."""
    metadata = _metadata()
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
