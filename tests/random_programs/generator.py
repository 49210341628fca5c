"""The generator: one family of ops after another adds values to a pool, and those that no op reads are the results.
Each op is evaluated when it is added. So the values that discontinuous ops read are known to be exact, and a program
whose results could not be judged is never generated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.random_programs.arrays import SEED, greatest, values
from tests.random_programs.tracked import Tracked, Unstable
from tests.random_programs.tracking import Tracker
from trivium.ir import ops
from trivium.ir.attributes import Dictionary, Integer
from trivium.ir.builder import Builder, region
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.types import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    UI8,
    UI16,
    UI32,
    UI64,
    FunctionType,
    TensorType,
    Type,
    is_float,
    tensor,
)

FLOATS = (F32, F32, F32, F32, F32, F32, F64, F64, BF16, BF16, F16)
INTEGERS = (I32, I32, I64, I8, I16, UI8, UI16, UI32, UI64)
ELEMENTS = (F32,) * 24 + (F64,) * 5 + (BF16,) * 4 + (F16,) * 3 + INTEGERS + (I1, I1, C64, C128)
EXTENTS = (1, 1, 2, 3, 3, 4, 5, 7, 8, 8, 9, 16, 17, 32)
LARGEST = 2500
"""The largest number of elements of a value."""
MOST_RESULTS = 4
TRIES = 40
"""Attempts per op that a program should have."""

Family = Callable[["Generator"], None]


class Rejected(Exception):
    """The family cannot continue with what it drew."""


class Generator:
    """Draws a program. `pool` are the values that ops read; later ones are more likely."""

    def __init__(self, seed: int, most_results: int = MOST_RESULTS, largest: int = LARGEST):
        self.seed = seed
        self.largest = largest
        self.most_results = most_results
        self.rng = np.random.default_rng(seed)
        self.block = Block()
        self.builder = Builder(self.block)
        self.tracker = Tracker()
        self.known: dict[Value, Tracked] = {}
        self.pool: list[Value] = []
        self.seeds: list[int] = []
        # One program in two has a single element type, as most real programs do.
        self.favourite: Type | None = self.pick(FLOATS) if self.chance(0.5) else None

    def module(self, families: Sequence[Family], steps: int) -> Module:
        """Returns a program to which `steps` families contributed."""
        self.argument(self.shape(least=int(self.rng.integers(1, 4))), self.element())
        done = 0
        for _ in range(steps * TRIES):
            done += self.attempt(self.pick(families))
            if done == steps:
                break
        return self._finish()

    def attempt(self, family: Family) -> bool:
        """Whether the family added its ops; if it gave up, those that it had added are removed at the end."""
        size = len(self.pool)
        try:
            with np.errstate(all="ignore"):
                family(self)
        except (Rejected, Unstable):
            return False
        return len(self.pool) > size

    # Chance

    def pick(self, choices: Sequence[Any]) -> Any:
        if not len(choices):
            raise Rejected
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """Returns a number from `low` to `high`, inclusive."""
        return int(self.rng.integers(low, high + 1))

    def some(self, rank: int, probability: float = 0.5) -> list[int]:
        """Returns some of the dimensions."""
        return [d for d in range(rank) if self.chance(probability)]

    def order(self, rank: int) -> tuple[int, ...]:
        """Returns the dimensions in some order, often unchanged."""
        if self.chance(0.4):
            return tuple(range(rank))
        return tuple(int(d) for d in self.rng.permutation(rank))

    # Types and shapes

    def element(self, allowed: Callable[[Type], bool] = lambda kind: True) -> Type:
        """Returns an element type."""
        if self.favourite is not None and allowed(self.favourite) and self.chance(0.8):
            return self.favourite
        return self.pick([kind for kind in ELEMENTS if allowed(kind)])

    def extent(self) -> int:
        return 0 if self.chance(0.01) else int(self.pick(EXTENTS))

    def shape(self, least: int = 0) -> tuple[int, ...]:
        rank = max(least, int(self.pick((0, 1, 2, 2, 3, 3, 4, 4, 5))))
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if math.prod(shape) <= self.largest:
                return shape

    # Values

    def argument(self, shape: Sequence[int], element: Type) -> Value:
        """Adds an argument to the program."""
        kind = tensor(*shape, of=element)
        value = self.block.add_argument(kind)
        self.seeds.append(int(self.rng.integers(1 << 30)))
        self.known[value] = Tracked(values(self.seeds[-1], kind))
        self.pool.append(value)
        return value

    def constant(self, array: np.ndarray | np.generic, element: Type | None = None) -> Value:
        if element is not None:
            array = np.asarray(array).astype(tensor(of=element).dtype)
        return self.add(ops.Constant(array))

    def fresh(self, shape: Sequence[int], element: Type) -> Value:
        """Returns a new value: an argument, a constant or, sometimes, the same number everywhere."""
        if self.chance(0.5):
            return self.argument(shape, element)
        kind = tensor(*shape, of=element)
        if self.chance(0.2):
            scalar = self.constant(values(int(self.rng.integers(1 << 30)), tensor(of=element)))
            return self.add(ops.BroadcastInDim(scalar, broadcast_dimensions=(), result=kind))
        return self.constant(values(int(self.rng.integers(1 << 30)), kind))

    def value(self, allowed: Callable[[Type], bool] = lambda kind: True, rank: int = 0, most: int = 9) -> Value:
        """Returns a value of the pool, more likely one of the last; a new one if none fits."""
        fitting = [v for v in self.pool if rank <= v.type.rank <= most and allowed(v.type.element_type)]
        if not fitting or self.chance(0.08):
            shape = self.shape(rank)[:most]
            return self.fresh(shape, self.element(allowed))
        return fitting[-1 - int(len(fitting) * self.rng.random() ** 2)]

    def float_value(self, rank: int = 0, most: int = 9) -> Value:
        return self.value(is_float, rank, most)

    def of_type(self, kind: TensorType) -> Value:
        """Returns a value of exactly that type: one of the pool, another one converted to it, or a new one."""
        same = [value for value in self.pool if value.type is kind]
        if same and self.chance(0.7):
            return self.pick(same)
        if self.chance(0.5):
            return self.broadcast_to(kind)
        others = [v for v in self.pool if v.type.rank == kind.rank and v.type.element_type is kind.element_type]
        if others and self.chance(0.8):
            return self.fitted(self.pick(others), kind.static_shape)
        return self.fresh(kind.static_shape, kind.element_type)

    def like(self, value: Value) -> Value:
        return self.of_type(value.type)

    def broadcast_to(self, kind: TensorType) -> Value:
        shape = kind.static_shape
        kept = self.some(len(shape))
        small = tuple(1 if self.chance(0.2) else shape[d] for d in kept)
        matching = [v for v in self.pool if v.type.shape == small and v.type.element_type is kind.element_type]
        operand = self.pick(matching) if matching else self.fresh(small, kind.element_type)
        return self.add(ops.BroadcastInDim(operand, broadcast_dimensions=tuple(kept), result=kind))

    def fitted(self, value: Value, shape: Sequence[int]) -> Value:
        """Returns `value`, sliced or padded to `shape`."""
        had = value.type.shape
        if tuple(had) == tuple(shape):
            return value
        if any(have < want for have, want in zip(had, shape, strict=True)) or self.chance(0.5):
            zero = self.constant(np.zeros((), np.int8), value.type.element_type)
            high = [want - have for have, want in zip(had, shape, strict=True)]
            low = [self.number(min(0, gap), max(0, gap)) for gap in high]
            rest = [gap - before for gap, before in zip(high, low, strict=True)]
            return self.add(ops.Pad(value, zero, low, rest, [0] * len(shape)))
        starts = [self.number(0, have - want) for have, want in zip(had, shape, strict=True)]
        limits = [start + want for start, want in zip(starts, shape, strict=True)]
        return self.add(ops.Slice(value, starts, limits, [1] * len(shape)))

    # Building

    def add(self, op: Operation) -> Any:
        """Evaluates and inserts an op, and returns its result or results."""
        try:
            if any(np.prod(kind.static_shape, dtype=float) > 2 * self.largest for kind in op.result_types):
                raise Rejected
            results = self.tracker.step(op, self.known)
        except BaseException:
            op.erase()
            raise
        self.known.update(zip(op.results, results, strict=True))
        return self.builder.add(op)

    def offer(self, *made: Value) -> None:
        """Adds values to the pool; those that become too large are clamped to between -1 and 1."""
        for value in made:
            known = self.known[value]
            if is_float(value.type.element_type) and greatest(known.array) > 60 and not self.chance(0.05):
                value = self.add(self.held(value))
            self.pool.append(value)

    def held(self, value: Value) -> Operation:
        if self.chance(0.5):
            bounds = [self.constant(np.int8(number), value.type.element_type) for number in (-4, 4)]
            return ops.Clamp(bounds[0], value, bounds[1])
        return ops.Tanh(value)

    def _first(self, value: Value) -> Value:
        """Returns the first places of a value along some dimensions, unless that would be undecided."""
        shape = value.type.static_shape
        some = self.some(len(shape))
        limits = [self.number(min(extent, 1), extent) if d in some else extent for d, extent in enumerate(shape)]
        try:
            return self.add(ops.Slice(value, [0] * len(shape), limits, [1] * len(shape)))
        except Unstable:
            return value

    def _finish(self) -> Module:
        unread = [v for v in dict.fromkeys(self.pool) if not v.uses and v not in self.block.arguments]
        unread = unread[-self.most_results :] or [self.pool[-1]]
        others = [v for v in self.pool if v not in unread and v not in self.block.arguments]
        if others and self.chance(0.3):
            unread.append(self.pick(others))
        self.builder.add(FuncReturn([self._first(value) if self.chance(0.25) else value for value in unread]))
        for op in reversed(self.block):
            if op is not self.block.last and not op.is_used:
                op.erase()
        for index in reversed(range(len(self.block.arguments))):
            if not self.block.arguments[index].uses:
                self.block.erase_argument(index)
                del self.seeds[index]
        return module_of(self.block, self.seeds)


def module_of(block: Block, seeds: Sequence[int]) -> Module:
    """Returns the program whose body is `block`."""
    inputs = tuple(argument.type for argument in block.arguments)
    kind = FunctionType(inputs, tuple(value.type for value in block.terminator.operands))
    attributes = [Dictionary({SEED: Integer(seed, I64)}) for seed in seeds]
    return Module.build(functions=[Function("main", kind, Region([block]), arg_attrs=tuple(attributes))])


def scalars(element: Type, count: int) -> list[TensorType]:
    return [tensor(of=element)] * count


def scalar_region(op: type, element: Type = F32, arguments: int = 2) -> Region:
    """Returns a region that applies `op` to its arguments."""
    return region(scalars(element, arguments), lambda b, *given: b.add(op(*given)))
