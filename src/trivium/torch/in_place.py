"""Inputs that a graph changes, such as a decoder's cache. AOTAutograd makes graphs that change nothing: they return the
new elements, which it copies to the inputs afterwards. A program writes these elements into an input's memory itself,
where its plan allows that (`compiler/donation.py`), and nothing is left to copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from trivium.backends.interface import results_in
from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.staged import StagedExecutable
from trivium.compiler.donation import ALIASING, wishes
from trivium.importers.pytorch import ImportedGraph, InputIndex, ResultIndex, SizeIndex, ViewIndex
from trivium.ir.attributes import Dictionary, Integer
from trivium.ir.types import I32
from trivium.torch.layouts import TensorLayouts

Replaced = tuple[int, int, Sequence[int]]
"""A result, the argument in whose memory it is, both by number, and the places of its dimensions in the order of
memory, if it is not row-major."""


def request_places(
    imported: ImportedGraph, changed: Sequence[int | None], views: Collection[int], layouts: TensorLayouts
) -> None:
    """Requests that results be in the memory of the inputs that they replace. The first outputs of the graph are the
    new elements of the inputs `changed`, by index; those of None stay outputs. The outputs `views` may be in the memory
    of inputs."""
    arguments = {index: number for number, index in enumerate(imported.arguments)}
    main = imported.module.main
    attributes = list(main.arg_attrs or [Dictionary()] * len(main.arguments))
    for result, index in _replaced(imported, changed, views).items():
        number = arguments.get(index)
        if number is None or result in layouts.strides:
            continue
        taken = layouts.arguments[number] if layouts.arguments else ()
        if taken == layouts.results.get(result, ()) and main.arguments[number].type == main.returned[result].type:
            attributes[number] = Dictionary({**attributes[number], ALIASING: Integer(result, I32)})
    main.attributes["arg_attrs"] = tuple(attributes)


def _replaced(imported: ImportedGraph, changed: Sequence[int | None], views: Collection[int]) -> dict[int, int]:
    """Returns the input that each result replaces, if nothing else is in the memory of either: an output that has the
    same elements as an input's new ones must not change when that input is changed again."""
    found = [output.base if isinstance(output, ViewIndex) else output for output in imported.outputs]
    kept = [output for index, output in enumerate(found) if index not in views]
    uses = Counter(output.index for output in kept if isinstance(output, ResultIndex | SizeIndex))
    pairs = zip(imported.outputs, found, changed, strict=False)
    return {
        result.index: index
        for output, result, index in pairs
        if isinstance(result, ResultIndex)
        and index is not None
        and uses[result.index] == 1
        and InputIndex(index) not in kept
        and not (isinstance(output, ViewIndex) and output.view.meta is not output.view.base_meta)
    }


def replaced_arguments(loaded: LoadedExecutable, returned: Mapping[int, Sequence[int]]) -> list[Replaced]:
    """Returns which results a program writes into the memory of the arguments that they replace. `returned` has the
    places of dimensions of those results that it returns in the order of memory."""
    if not isinstance(loaded, StagedExecutable):
        return []
    planned, requested = results_in(loaded.artifact), wishes(loaded.signature)
    found = ((result, number) for number, result in requested.items() if result is not None)
    return sorted((result, number, returned.get(result, ())) for result, number in found if planned[number] == result)
