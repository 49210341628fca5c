"""The program of a graph for one combination of sizes, as a function of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

# What Inductor uses: `torch.empty` takes longer than all the rest of a small run.
from torch._C._dynamo.guards import _empty_strided_cpu  # pyright: ignore[reportAttributeAccessIssue]
from torch._prims_common import make_contiguous_strides_for

from trivium.backends.parts import PartedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler.layouts import outermost_first, places
from trivium.executable import Executable
from trivium.importers.pytorch import ImportedGraph, InputIndex, ResultIndex, SizeIndex, ViewIndex
from trivium.importers.pytorch.aliases import NONE, Numbers, layout_at
from trivium.importers.pytorch.context import Operand
from trivium.importers.pytorch.outputs import OnMeta
from trivium.importers.pytorch.symbols import has_symbols
from trivium.importers.pytorch.types import DTYPES, resolved, to_array, to_tensor
from trivium.ir.types import TensorType
from trivium.torch.huge_pages import LEAST, on_huge_pages
from trivium.torch.in_place import replaced_arguments
from trivium.torch.layouts import TensorLayouts
from trivium.torch.parameters import Parameters
from trivium.torch.threads import use_threads_of_ops

Shown = ResultIndex | SizeIndex | ViewIndex | OnMeta | Operand
Described = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""The shape, strides and type of a result."""

Output = torch.Tensor | Operand


class Variant:
    """The program of a graph for one combination of sizes. Tensors are passed by address. `parameters` are part of the
    program."""

    def __init__(
        self,
        imported: ImportedGraph,
        executable: Executable,
        layouts: TensorLayouts,
        parameters: Parameters,
        kind: str,
    ):
        self.parameters = parameters
        self.kind = kind
        self.taken = [outermost_first(order) for order in layouts.arguments]
        self.returned = {index: places(order) for index, order in layouts.results.items()}
        # Where results will have gradients, a view of one would get them, too; outputs without gradients must not.
        self.detaches = kind == "forward"
        self.arguments = imported.arguments
        self.draws = imported.draws
        self.checks = imported.checks
        self.loaded = executable.loaded
        self.execute_at = executable.loaded.execute_at
        self.replaced = replaced_arguments(executable.loaded, self.returned)
        kinds = [entry.type for entry in executable.signature.results]
        is_dynamic = isinstance(executable.loaded, PartedExecutable | SpecializingExecutable)
        is_dynamic |= not all(kind.is_static for kind in kinds)
        views = [output for output in imported.outputs if isinstance(output, ViewIndex)]
        made = [] if is_dynamic else [self._described(i, kind, layouts) for i, kind in enumerate(kinds)]
        replacing = [index for index, _, _ in self.replaced]
        self.results = None if is_dynamic else [x for i, x in enumerate(made) if i not in replacing]
        self.large = [index for index, result in enumerate(self.results or ()) if _nbytes(result) >= LEAST]
        self.strides = {i: strides for i, strides in layouts.strides.items() if i not in self.returned}
        results = [x for x in views if isinstance(x.base, ResultIndex)]
        self.open = {x.base.index: x for x in results if has_symbols(x.view.base_meta)}
        self.seen = {view.base.index for view in views if isinstance(view.base, InputIndex)}
        self.outputs = imported.outputs
        numbers = [output.index if isinstance(output, ResultIndex) else -1 for output in self.outputs]
        self.returns_results = numbers == list(range(len(made))) and not self.strides and not self.checks

    def _described(self, index: int, kind: TensorType, layouts: TensorLayouts) -> Described:
        """Returns the shape, strides and type of a result as PyTorch expects it, if the program can return it so."""
        shape, order = kind.static_shape, self.returned.get(index)
        strides = make_contiguous_strides_for(shape)
        if order is not None:
            shape, strides = (tuple(numbers[place] for place in order) for numbers in (shape, strides))
            strides = layouts.strides.get(index, strides)
        return shape, strides, DTYPES[kind.element_type]

    def __call__(self, inputs: list[Any]) -> Sequence[Output]:
        listed = map(inputs.__getitem__, self.arguments)
        if self.taken:
            listed = [x.permute(order) if order else x for x, order in zip(listed, self.taken, strict=True)]
        given = [
            x if x.is_contiguous() and x.data_ptr() and not x.is_conj() and not x.is_neg() else _plain(x)
            for x in listed
        ]
        seen = {index: inputs[index] for index in self.seen} if self.seen else {}
        sizes = self._sizes(inputs)
        inputs.clear()
        if self.draws:
            given.append(_drawn_state())
        use_threads_of_ops()
        made = self._executed(given, sizes)
        if self.returns_results:
            return made
        for index, verify in self.checks.items():
            verify(made[index])
        for index, strides in self.strides.items():
            made[index] = laid_out(made[index], strides)
        for index, output in self.open.items():
            layout = layout_at(output.view.base_meta, _numbers(output, made))
            made[index] = laid_out(made[index], layout.strides)
        return [self._output(output, made, seen) for output in self.outputs]

    def _sizes(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        """Returns the sizes that the program takes."""
        return ()

    def _executed(self, given: Sequence[torch.Tensor], sizes: tuple[int, ...]) -> list[torch.Tensor]:
        """Runs the program. If its extents depend on its data, results have shapes only afterwards."""
        if self.results is None:
            made = [to_tensor(array) for array in self.loaded.execute(*map(to_array, given))]
            for index, order in self.returned.items():
                made[index] = made[index].permute(order)
            return made
        made = self._with_replaced(self._new_results(self.results), given)
        self.execute_at([tensor.data_ptr() for tensor in (*given, *made)])
        return made

    def _new_results(self, described: Sequence[Described]) -> list[torch.Tensor]:
        made = [_empty_strided_cpu(*result) for result in described]
        for index in self.large:
            on_huge_pages(made[index])
        return made

    def _with_replaced(self, made: list[torch.Tensor], given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Adds to the memory of new results that of arguments."""
        for index, number, order in self.replaced:
            made.insert(index, given[number].permute(order) if order else given[number].detach())
        return made

    def _output(self, output: Shown, made: list[torch.Tensor], seen: dict[int, torch.Tensor]) -> Output:
        """Returns an output of the graph: a result, a view of a result or of an input, or a constant."""
        if isinstance(output, ViewIndex):
            place, view = output.base, output.view
            base = seen[place.index] if isinstance(place, InputIndex) else made[place.index]
            base = base.detach() if self.detaches and view.meta is not view.base_meta else base
            return view.of(base, _numbers(output, made) if output.numbers else NONE)
        if isinstance(output, SizeIndex):
            return int(made[output.index])
        if isinstance(output, OnMeta):
            return output.made()
        return made[output.index] if isinstance(output, ResultIndex) else output


def _numbers(output: ViewIndex, made: Sequence[torch.Tensor]) -> Numbers:
    """Returns the sizes and places that the program has computed for a view."""
    return {x: int(made[at.index]) if isinstance(at, SizeIndex) else at for x, at in output.numbers.items()}


def _nbytes(result: Described) -> int:
    shape, _, kind = result
    return math.prod(shape) * kind.itemsize


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with its elements in row-major order in memory."""
    return resolved(tensor).contiguous()


def _drawn_state() -> torch.Tensor:
    """Draws a state for the program's generator from PyTorch's: different at each call, reproducible by seed."""
    return torch.empty(2, dtype=torch.int64, device="cpu").random_()


def laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Returns `tensor` with the given strides; repeated elements (stride 0) are in memory once."""
    once = tensor[tuple(slice(None) if stride else slice(1) for stride in strides)]
    return (
        torch.empty_strided(once.shape, strides, dtype=tensor.dtype, device=tensor.device)
        .copy_(once)
        .expand(tensor.shape)
    )
