"""Programs for ranges of sizes, on arrays: arguments are given the space that the program reads, and the part of a
result that exists is returned."""

from __future__ import annotations

import functools
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from trivium.backends.estimates import Costs
from trivium.backends.parts import PartedExecutable
from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.ranges import Ranges, Sizes, shown
from trivium.compiler.bounded import bounded_where_valid
from trivium.compiler.bounded.axes import Extent, is_fixed
from trivium.compiler.dynamic import Shape
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.types import TensorType, Type

MOST_VALUES = 64
"""How many integers among the arguments extents may follow from."""

log = logging.getLogger("trivium.executable")


class OpenSizes:
    """What is not known of the arguments of a function before a call: the extents that its types leave open, and the
    integers in those of its arguments from which it computes extents."""

    def __init__(self, inputs: Sequence[Type], shape_arguments: Sequence[int] = ()):
        self.types = [kind for kind in inputs if isinstance(kind, TensorType)]
        self.listed = shape_arguments
        self.places = [(i, d) for i, kind in enumerate(self.types) for d in range(kind.rank) if kind.shape[d] is None]
        self.are_known = len(self.types) == len(inputs) and self._lists_are_short()

    def _lists_are_short(self) -> bool:
        lists = [self.types[index] for index in self.listed]
        are_integers = all(kind.is_static and np.dtype(kind.dtype).kind in "iub" for kind in lists)
        return are_integers and sum(math.prod(kind.static_shape) for kind in lists) <= MOST_VALUES

    def of(self, shapes: Sequence[Shape | None], values: Mapping[int, np.ndarray]) -> Sizes:
        """Returns the sizes of arguments with these shapes, and values of those from which extents are computed."""
        extents = [shapes[index][dimension] for index, dimension in self.places]  # type: ignore[index]
        return *extents, *(int(number) for index in self.listed for number in values[index].flat)

    def shapes(self, sizes: Sizes) -> list[Shape]:
        """Returns the shapes of all arguments with these sizes."""
        extents = iter(sizes)
        return [tuple(next(extents) if size is None else size for size in kind.shape) for kind in self.types]

    def values(self, sizes: Sizes) -> dict[int, np.ndarray]:
        """Returns the values of those arguments from which extents are computed."""
        numbers, found = iter(sizes[len(self.places) :]), {}
        for index in self.listed:
            kind = self.types[index]
            shape = kind.static_shape
            found[index] = np.array([next(numbers) for _ in range(math.prod(shape))], kind.dtype).reshape(shape)
        return found


class RangedProgram:
    """A program for several combinations of the sizes of a module's arguments, or those of them for which it is valid,
    as it is for the one that is `needed`. Raises `Unbounded` if an op of the module cannot compute with several
    sizes."""

    def __init__(
        self,
        module: Module,
        sizes: OpenSizes,
        combinations: Sequence[Sizes],
        needed: Sizes,
        compiled: Callable[[Module, str], LoadedExecutable],
    ):
        values = list(map(sizes.values, combinations))
        listed = {index: [each[index] for each in values] for index in sizes.listed}
        given = list(map(sizes.shapes, combinations)), listed, combinations.index(needed)
        valid, program = bounded_where_valid(module, *given)
        self.combinations = [combinations[number] for number in valid]
        self.numbers = {each: number for number, each in enumerate(self.combinations)}
        self.types = [x.type for x, _ in zip(program.module.main.arguments, program.arguments, strict=False)]
        self._spaces = [
            None if all(map(is_fixed, extents)) else kind.static_shape
            for kind, extents in zip(self.types, program.arguments, strict=True)
        ]
        self._results = [None if all(map(is_fixed, extents)) else extents for extents in program.results]
        self.extents = list(map(program.extents_of, range(len(valid))))
        self.loaded = compiled(program.module, shown(self.combinations))

    def execute(self, arrays: Sequence[np.ndarray], sizes: Sizes) -> list[np.ndarray]:
        """Runs on arrays of these sizes and returns new ones, which belong to the caller."""
        pairs = zip(arrays, self._spaces, strict=True)
        given = [array if space is None else with_space(array, space) for array, space in pairs]
        number = self.numbers[sizes]
        made = self.loaded.execute(*given, *self.extents[number])
        pairs = zip(made, self._results, strict=True)
        return [array if extents is None else _existing(array, extents, number) for array, extents in pairs]


def with_space(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Returns an array with space behind its elements."""
    found = np.empty(shape, array.dtype)
    found[tuple(map(slice, array.shape))] = array
    return found


def _existing(array: np.ndarray, extents: Sequence[Extent], number: int) -> np.ndarray:
    """Returns the part of a result that exists in a combination of sizes."""
    return np.ascontiguousarray(array[tuple(slice(extent[number]) for extent in extents)])


class RangedPrograms:
    """The programs of a function for ranges of its open sizes. `opened` returns its module, without calls, and
    `compiled` the program of such a module, which is for the sizes that it is told."""

    def __init__(
        self,
        name: str,
        sizes: OpenSizes,
        opened: Callable[[], Module],
        compiled: Callable[[Module, str], LoadedExecutable],
        most: int,
    ):
        self.name, self.sizes = name, sizes
        self._opened, self._compiled = opened, compiled
        self._ranges: Ranges[RangedProgram] | None = Ranges(most) if sizes.are_known else None
        self._compiling = threading.Lock()

    def __iter__(self) -> Iterator[RangedProgram]:
        """The programs, the least recently used one first."""
        return iter(self._ranges or ())

    def see_exact(self, sizes: Sizes, loaded: LoadedExecutable, module: Module) -> None:
        """Learns that there is a program of a module for just these sizes."""
        if isinstance(loaded, PartedExecutable):
            self._ranges = None  # its extents are not known before it runs
        if self._ranges is not None:
            self._ranges.see_exact(sizes, Costs.of_module(loaded, module))

    def find(self, sizes: Sizes) -> RangedProgram | None:
        """Returns the program for a range of these sizes, unless they get one of their own, or the function cannot have
        one."""
        ranges = self._ranges
        if ranges is None:
            return None
        if (found := ranges.find(sizes)) is not None:
            return found
        with self._compiling:
            if (other := ranges.find(sizes)) is not None:
                return other  # another thread has made it
            combinations = ranges.wanted(sizes)
            if len(combinations) < 2:
                return None
            try:
                return self._made(ranges, combinations, sizes)
            except Error as error:
                log.info("%s has no programs for ranges of sizes: %s", self.name, error)
                if not getattr(error, "combinations", ()):
                    self._ranges = None
                return None

    def _made(self, ranges: Ranges[RangedProgram], combinations: Sequence[Sizes], needed: Sizes) -> RangedProgram:
        made = RangedProgram(self._module, self.sizes, combinations, needed, self._compiled)
        ranges.add(made.combinations, made, Costs.of_module(made.loaded, self._module))
        return made

    @functools.cached_property
    def _module(self) -> Module:
        return self._opened()
