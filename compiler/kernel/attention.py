"""The mark of a kernel that is attention: a softmax of scores, each from a product, that weighs the terms of a second
product; and the loop nest that defines its meaning. Weights are relative to the greatest score so far, and sums are
scaled whenever that grows, so that no row of scores exists as a whole."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction import Contraction, ContractionLoop
from trivium.compiler.kernel.contraction_nest import operand_element
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Register

TILE = 64
"""The number of keys whose scores the loop nest has at a time."""


@dataclass(frozen=True, eq=False)
class Attention:
    """`scores` has the loops batch, m (queries), n (keys) and k; its epilogue yields the score. `values` has the same
    loops for batch and m, and n (features) and k (keys); its lhs are the weights, which are in no buffer of the
    program. Its epilogue is a block of (sum of weighted values, sum of weights, *indices of batch, m, n) that stores.
    `rows`, if set, is a block of (greatest score, sum of weights, *indices of batch, m) that stores, too. Everything is
    f32."""

    scores: Contraction
    values: Contraction
    rows: Block | None = None


def attention_kernel(name: str, params: Sequence[Buffer], mark: Attention) -> Kernel:
    """Returns the kernel of `mark`."""
    builder = KernelBuilder(name)
    builder.params.extend(params)
    _Nest(builder, mark).emit()
    kernel = Kernel(name, list(params), builder.body, attention=mark)
    kernel.verify()
    return kernel


class WeightedSums(ABC):
    """The loop nest of the product `values`, whose weights are computed in tiles: `_tiles` adds the weighted values to
    the sums of a row's features, and returns what the epilogue takes beside a sum."""

    def __init__(self, builder: KernelBuilder, values: Contraction) -> None:
        self._b, self._weighted = builder, values
        self._values: dict[ContractionLoop, Register] = {}

    def emit(self) -> None:
        b, loops = self._b, self._weighted.loops
        outer, features = [loop for loop in loops if loop.role in ("batch", "m")], self._of("n")
        with b.parallel(*[loop.extent for loop in outer]) as indices:
            self._values.update(zip(outer, indices, strict=True))
            sums = b.scratch("f32", [loop.extent for loop in features])
            with b.parallel(*sums.shape) as places:
                b.store(sums, 0.0, *places)
            others = self._tiles(sums, indices)
            with b.parallel(*sums.shape) as places:
                b.inline(self._weighted.epilogue, b.load(sums, *places), *others, *indices, *places)

    @abstractmethod
    def _tiles(self, sums: Buffer, indices: Sequence[Register]) -> Sequence[Register]: ...

    def _of(self, role: str) -> list[ContractionLoop]:
        return [loop for loop in self._weighted.loops if loop.role == role]


class _Nest(WeightedSums):
    def __init__(self, builder: KernelBuilder, mark: Attention) -> None:
        super().__init__(builder, mark.values)
        self._mark = mark

    def _tiles(self, sums: Buffer, indices: Sequence[Register]) -> Sequence[Register]:
        greatest, total = self._added(sums)
        if self._mark.rows is not None:
            self._b.inline(self._mark.rows, greatest, total, *indices)
        return [total]

    def _added(self, sums: Buffer) -> Sequence[Register]:
        """Adds up the weighted values, one tile of keys after the other. Returns the greatest score, and the sum of the
        weights."""
        b = self._b
        (keys,) = self._of("k")
        inits = [b.constant(-math.inf, "f32"), b.constant(0.0, "f32")]
        with b.sequential(-(-keys.extent // TILE), inits=inits) as tiles:
            weights = b.scratch("f32", [TILE])
            first = b.multiply(tiles.index, TILE)

            def each(act: Callable[[Register, Register], Register], start: float) -> Register:
                combiner = "maximum" if start else "add"
                with b.reduction(TILE, inits=[b.constant(start, "f32")], combiner=combiner) as loop:
                    loop.yield_(act(loop.index, b.add(first, loop.index)))
                return loop.result

            with b.parallel(TILE) as (place,):
                b.store(weights, self._score(b.add(first, place), keys.extent), place)
            greatest, total = tiles.carried
            found = each(lambda place, _: b.load(weights, place), -math.inf)
            found = b.apply("maximum", greatest, found)
            shift = b.select(b.compare("EQ", found, -math.inf), 0.0, found)
            factor = b.apply("exponential", b.subtract(greatest, shift))
            with b.parallel(TILE) as (place,):
                b.store(weights, b.apply("exponential", b.subtract(b.load(weights, place), shift)), place)
            more = each(lambda place, _: b.load(weights, place), 0.0)
            with b.parallel(*sums.shape) as features:
                self._values.update(zip(self._of("n"), features, strict=True))
                term = each(lambda place, key: self._term(weights, place, key, keys), 0.0)
                b.store(sums, b.add(b.multiply(b.load(sums, *features), factor), term), *features)
            tiles.yield_(found, b.add(b.multiply(total, factor), more))
        return tiles.results

    def _score(self, key: Register, keys: int) -> Register:
        """Returns a score: -inf beyond the last key."""
        b, mark = self._b, self._mark.scores
        inner = [loop for loop in mark.loops if loop.role == "k"]
        with b.if_(b.compare("LT", key, keys)) as branch:
            self._values[next(loop for loop in mark.loops if loop.role == "n")] = key
            zero = b.constant(0.0, "f32")
            with b.reduction(*[loop.extent for loop in inner], inits=[zero], combiner="add") as loop:
                self._values.update(zip(inner, loop.indices, strict=True))
                every = [self._values[one] for one in mark.loops]
                lhs = operand_element(b, mark, mark.lhs, mark.lhs_prologue, every)
                rhs = operand_element(b, mark, mark.rhs, mark.rhs_prologue, every)
                loop.yield_(b.multiply(lhs, rhs))
            outer = [self._values[one] for one in mark.loops if one.role != "k"]
            branch.yield_(*b.inline(mark.epilogue, loop.result, *outer))
        with branch.otherwise():
            branch.yield_(b.constant(-math.inf, "f32"))
        return branch.results[0]

    def _term(self, weights: Buffer, place: Register, key: Register, keys: ContractionLoop) -> Register:
        """Returns a weighted value: zero beyond the last key."""
        b, mark = self._b, self._mark.values
        with b.if_(b.compare("LT", key, keys.extent)) as branch:
            self._values[keys] = key
            every = [self._values[one] for one in mark.loops]
            value = operand_element(b, mark, mark.rhs, mark.rhs_prologue, every)
            branch.yield_(b.multiply(b.load(weights, place), value))
        with branch.otherwise():
            branch.yield_(b.constant(0.0, "f32"))
        return branch.results[0]
