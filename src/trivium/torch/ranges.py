"""Programs of a graph for ranges of sizes: sizes that change with every call, as those of a cache that grows with every
token, need one program for many of them. Tensors get space for the largest sizes of the range; of results, the part
that exists is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sympy
import torch
from torch import fx
from torch._C._dynamo.guards import _empty_strided_cpu  # pyright: ignore[reportAttributeAccessIssue]
from torch._prims_common import make_contiguous_strides_for

from trivium.backends.ranges import Sizes
from trivium.compiler.bounded import BoundedProgram, bounded_where_valid
from trivium.compiler.bounded.axes import is_fixed
from trivium.compiler.pipeline import inline_used
from trivium.executable import Executable
from trivium.importers.pytorch import ImportedGraph, ResultIndex, ViewIndex
from trivium.importers.pytorch.symbols import expression_of, has_symbols, symbolic, without_limits
from trivium.ir.func import Module
from trivium.ir.types import TensorType
from trivium.torch.layouts import TensorLayouts, take_layouts
from trivium.torch.nested import is_ragged
from trivium.torch.parameters import Parameters
from trivium.torch.variant import Variant, laid_out

Values = Mapping[sympy.Symbol, int]


class Place(NamedTuple):
    """The input of a graph, by its number, that has the value of a symbol: itself, or as an extent."""

    number: int
    dimension: int | None


class OpenGraph:
    """The symbols in the sizes of a graph's inputs, and their values."""

    def __init__(self, graph: fx.GraphModule):
        self.metas = [node.meta.get("val") for node in graph.graph.find_nodes(op="placeholder")]
        sized = [(size, x, place) for size, place in self._sizes() if (x := symbolic(size)) is not None]
        self.places = {x: place for _, x, place in reversed(sized) if isinstance(x, sympy.Symbol)}
        self.symbols = tuple(self.places)
        self.environment = next((size.node.shape_env for size, _, _ in sized if isinstance(size, torch.SymInt)), None)
        others = any(isinstance(meta, torch.SymFloat | torch.SymBool) for meta in self.metas)
        self.is_known = not others and all(x.free_symbols <= self.places.keys() for _, x, _ in sized)

    def _sizes(self) -> Iterator[tuple[int | torch.SymInt, Place]]:
        """Yields the extents of inputs, and the inputs that are integers themselves."""
        for number, meta in enumerate(self.metas):
            if isinstance(meta, torch.Tensor):
                yield from ((size, Place(number, dimension)) for dimension, size in enumerate(meta.shape))
            elif isinstance(meta, int | torch.SymInt) and not is_ragged(meta):
                yield meta, Place(number, None)

    def sizes(self, given: Sequence[Any]) -> Sizes:
        """Returns the values of the symbols in a call, whose inputs have these shapes, or are these numbers."""
        places = self.places.values()
        return tuple(
            int(given[number] if dimension is None else given[number][dimension]) for number, dimension in places
        )

    def allowed(self, combinations: Sequence[Sizes]) -> list[Sizes]:
        """Returns those sizes for which PyTorch has made the graph."""
        guards = [] if self.environment is None else [guard.expr for guard in self.environment.guards]
        exact = [_exact(self.values(sizes)) for sizes in combinations]
        return [
            sizes
            for sizes, values in zip(combinations, exact, strict=True)
            if all(guard.xreplace(values) != sympy.false for guard in guards)
        ]

    def values(self, sizes: Sizes) -> Values:
        """Returns the values of the symbols by their names."""
        return dict(zip(self.symbols, sizes, strict=True))

    def shapes(self, indices: Sequence[int], values: Values) -> list[tuple[int, ...]]:
        """Returns the shapes of inputs for these values."""
        exact = _exact(values)
        return [tuple(_number(size, exact) for size in self.metas[index].shape) for index in indices]


def _exact(values: Values) -> dict[sympy.Basic, sympy.Basic]:
    return {symbol: sympy.Integer(value) for symbol, value in values.items()}


def _number(size: int | torch.SymInt, values: Mapping[sympy.Basic, sympy.Basic]) -> int:
    expression = symbolic(size)
    if expression is None:
        return int(size)
    return int(values[expression] if expression in values else expression.xreplace(values))  # type: ignore[arg-type]


class Sized(NamedTuple):
    """A program of a graph for ranges of sizes, the combinations of them in its order, the places of the sizes that it
    takes, and the strides that PyTorch expects of its results, where they have open sizes and are not row-major."""

    graph: OpenGraph
    combinations: Sequence[Sizes]
    free: Sequence[int]
    program: BoundedProgram
    strides: Mapping[int, Sequence[int | torch.SymInt]]


class RangeVariant(Variant):
    """The program of a graph for ranges of sizes."""

    def __init__(
        self, imported: ImportedGraph, executable: Executable, layouts: TensorLayouts, kind: str, sized: Sized
    ):
        super().__init__(imported, executable, layouts, Parameters((), ()), kind)
        self.graph, self.combinations, self.free, program, self.open_strides = sized
        self.numbers = {sizes: number for number, sizes in enumerate(self.combinations)}
        self.expected: dict[tuple[int, int], tuple[int, ...]] = {}
        kinds = [argument.type for argument in program.module.main.arguments]
        self.spaces = [
            None if all(map(is_fixed, extents)) else (kind.static_shape, make_contiguous_strides_for(kind.static_shape))
            for kind, extents in zip(kinds[: len(self.arguments)], program.arguments, strict=False)
        ]
        self.result_extents = program.results
        self.extents = [list(map(int, program.extents_of(number))) for number in range(len(self.combinations))]

    def _sizes(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        places = self.graph.places.values()
        return tuple(inputs[number] if d is None else inputs[number].shape[d] for number, d in places)

    def _executed(self, given: Sequence[torch.Tensor], sizes: tuple[int, ...]) -> list[torch.Tensor]:
        number = self.numbers[sizes]
        count = len(self.arguments)
        pairs = zip(given[:count], self.spaces, strict=True)
        taken = [x if space is None else _with_space(x, *space) for x, space in pairs]
        # Sizes and extents, which the program takes by address.
        free = [sizes[place] for place in self.free]
        listed = torch.tensor([*free, *self.extents[number]], dtype=torch.int64, device="cpu")
        places = range(listed.data_ptr(), listed.data_ptr() + listed.nbytes, listed.itemsize)
        assert self.results is not None
        made = self._new_results(self.results)
        tensors, drawn, results = ([x.data_ptr() for x in listed] for listed in (taken, given[count:], made))
        self.execute_at([*tensors, *places[: len(free)], *drawn, *places[len(free) :], *results])
        return [self._existing(index, x, number) for index, x in enumerate(made)]

    def _existing(self, index: int, made: torch.Tensor, number: int) -> torch.Tensor:
        """Returns the part of a result that exists in a combination of sizes, in the layout that PyTorch expects."""
        extents = self.result_extents[index]
        if all(map(is_fixed, extents)):
            return made
        shape = tuple(extent[number] for extent in extents)
        strides = self._strides_at(index, number) if index in self.open_strides else make_contiguous_strides_for(shape)
        if all(size == 1 or a == b for size, a, b in zip(shape, made.stride(), strides, strict=True)):
            return made.as_strided(shape, strides)
        return laid_out(made.as_strided(shape, made.stride()), strides)

    def _strides_at(self, index: int, number: int) -> tuple[int, ...]:
        """Returns the strides that PyTorch expects of a result in a combination of sizes."""
        key = index, number
        if key not in self.expected:
            exact = _exact(self.graph.values(self.combinations[number]))
            self.expected[key] = tuple(_number(stride, exact) for stride in self.open_strides[index])
        return self.expected[key]


def _with_space(x: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    """Returns a tensor with space behind its elements."""
    y = _empty_strided_cpu(shape, strides, x.dtype)
    y.as_strided(x.shape, strides).copy_(x)
    return y


def _open_strides(imported: ImportedGraph, visible: Callable[[int], bool]) -> dict[int, Sequence[int | torch.SymInt]]:
    """Returns the strides that PyTorch expects of results, where they have open sizes and are not row-major. Those of
    results that only its own backward program reads do not matter."""
    pairs = list(enumerate(zip(imported.outputs, imported.metas, strict=True)))
    metas = {output.index: meta for i, (output, meta) in pairs if isinstance(output, ResultIndex) and visible(i)}
    views = [output for _, (output, _) in pairs if isinstance(output, ViewIndex)]
    metas |= {view.base.index: view.view.base_meta for view in views if isinstance(view.base, ResultIndex)}
    return {i: x.stride() for i, x in metas.items() if isinstance(x, torch.Tensor) and not _is_row_major(x)}


def _is_row_major(meta: torch.Tensor) -> bool:
    """Whether a tensor is row-major and without gaps, whatever its sizes are."""
    expected: Any = sympy.Integer(1)
    for size, stride in zip(reversed(meta.shape), reversed(meta.stride()), strict=True):
        if symbolic(size) is None and size == 1:
            continue
        if sympy.expand(_expression(stride) - expected) != 0:
            return False
        expected = expected * _expression(size)
    return True


def _expression(size: int | torch.SymInt) -> sympy.Basic:
    """Returns a size, or a stride where there are elements."""
    return without_limits(expression_of(size))


def compile_for(
    graph: OpenGraph,
    combinations: Sequence[Sizes],
    needed: Sizes,
    inputs: Sequence[Any],
    imported: Callable[[Sequence[Any], Mapping[sympy.Symbol, int | None]], ImportedGraph],
    visible: Callable[[int], bool],
    compiled: Callable[[Module], Executable],
    kind: str,
) -> RangeVariant:
    """Returns a program for several combinations of sizes, or those for which it is valid, made from the graph as it is
    `imported` with open sizes. The inputs have the one that is `needed`. Raises an error if it has an op that cannot
    compute with several sizes at once."""
    columns = dict(zip(graph.symbols, zip(*combinations, strict=True), strict=True))
    known = {symbol: column[0] if len(set(column)) == 1 else None for symbol, column in columns.items()}
    made = imported(inputs, known)
    # The memory layouts of inputs with open sizes may differ from call to call.
    pairs = zip(inputs, graph.metas, strict=True)
    layouts = take_layouts(made, [None if has_symbols(meta) else x for x, meta in pairs], visible)
    kinds = [argument.type for argument in made.module.main.arguments]
    shapes = [_shapes(graph, made, kinds, sizes) for sizes in combinations]
    count = len(made.arguments)
    free = [place for place, number in enumerate(known.values()) if number is None]
    sizes = {count + i: [each[place] for each in combinations] for i, place in enumerate(free)}
    valid, program = bounded_where_valid(inline_used(made.module), shapes, sizes, combinations.index(needed))
    left = [combinations[number] for number in valid]
    sized = Sized(graph, left, free, program, _open_strides(made, visible))
    return RangeVariant(made, compiled(program.module), layouts, kind, sized)


def _shapes(
    graph: OpenGraph, imported: ImportedGraph, kinds: Sequence[TensorType], sizes: Sizes
) -> list[tuple[int, ...]]:
    """Returns the shapes of a program's arguments for these sizes."""
    named = dict(enumerate(graph.shapes(imported.arguments, graph.values(sizes))))
    return [kind.static_shape if kind.is_static else named[index] for index, kind in enumerate(kinds)]
