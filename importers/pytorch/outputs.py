"""What became of the inputs and outputs of a graph that was imported: which are arguments and results of its program,
and which outputs are views of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy
import torch
from torch import fx

from trivium.importers.extents import Extent
from trivium.importers.pytorch.aliases import View
from trivium.importers.pytorch.context import Context, Meta, Operand
from trivium.importers.pytorch.graph import location_of, target_name
from trivium.importers.pytorch.symbols import has_symbols
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.func import Module


@dataclass(frozen=True)
class ImportedGraph:
    """A module made from one graph, and the mapping from the graph's inputs and outputs to it."""

    module: Module
    arguments: tuple[int, ...]
    """The inputs of the graph that the function takes, in its order."""
    outputs: tuple[ResultIndex | SizeIndex | ViewIndex | OnMeta | Operand, ...]
    """For each output of the graph: a `ResultIndex`, a `SizeIndex`, a `ViewIndex`, an `OnMeta`, or the output itself (a
    number, `None`)."""
    metas: tuple[Meta, ...]
    """For each output of the graph, PyTorch's description: a fake tensor, with its strides, or a number."""
    draws: bool
    """Whether the function takes, as its last argument, and returns, as its last result, the state of the generator."""
    checks: Mapping[int, Callable[[torch.Tensor], None]]
    """Results after the graph's own, by index, with what raises PyTorch's error if one tells of a failure."""


@dataclass(frozen=True)
class SizeIndex:
    """An output that is a size which the program computes: the result at an index, as a number."""

    index: int


@dataclass(frozen=True)
class ResultIndex:
    """The index of a result of a function."""

    index: int


@dataclass(frozen=True)
class InputIndex:
    """The index of an input of a graph."""

    index: int


@dataclass(frozen=True)
class ViewIndex:
    """A view of a result or of an input."""

    base: ResultIndex | InputIndex
    view: View
    numbers: Mapping[sympy.Basic, SizeIndex | int]
    """What its sizes and its place are that depend on elements of tensors: results, as numbers."""


@dataclass(frozen=True)
class OnMeta:
    """A tensor on PyTorch's device `meta`, which has no elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def like(cls, meta: torch.Tensor) -> OnMeta:
        """Returns one for PyTorch's description of an output."""
        if has_symbols(meta):
            raise Error("an output on the device meta has symbolic sizes, expected numbers")
        return cls(tuple(meta.shape), meta.stride(), meta.dtype)

    def made(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device="meta")


class OpenNumbers:
    """The numbers in the descriptions of views that depend on elements of tensors: results of the program."""

    def __init__(self, views: Iterable[View]):
        self._bases = {expression: view.base for view in views for expression in view.open()}

    def evaluate(self, emit: Context) -> list[Extent]:
        """Returns the numbers."""
        return [_number(emit, expression, base) for expression, base in self._bases.items()]

    def described(self, base: ResultIndex | InputIndex, view: View, found: Sequence[object]) -> ViewIndex:
        """Returns a view of a result or of an input, with those of the numbers `found` that it needs."""
        numbers = dict(zip(self._bases, found, strict=True))
        needed = {x: number for x in view.open() if isinstance(number := numbers[x], SizeIndex | int)}
        return ViewIndex(base, view, needed)


def _number(emit: Context, expression: sympy.Basic, base: fx.Node) -> Extent:
    """Returns a number of the description of views of a node's result."""
    try:
        return emit.symbols.evaluate(emit, expression)
    except UnsupportedOpError as error:
        reason = "outputs are views of its result, whose offset in memory depends on elements of tensors"
        where = location_of(base).describe()
        found = [Unsupported(target_name(base), reason=reason)]
        raise UnsupportedOpError("1 op is not supported:", found, inside=base.format_node(), source=where) from error
