"""The mark of a kernel in which weights are computed from products, element by element, and are themselves a factor of
a last product: the gradients of attention, whose weights are computed again from the scores. The loop nest defines its
meaning: no more than a tile of weights exists at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trivium.compiler.kernel.attention import TILE, WeightedSums
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction import Contraction, ContractionLoop
from trivium.compiler.kernel.contraction_nest import operand_element
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Register


@dataclass(frozen=True, eq=False)
class Chained:
    """`products` have the loops batch, m, n and k, of which only k differ; their epilogues yield the sums. `weight` is
    a block of (*sums, *indices of batch, m, n) that yields a weight. `values` has the same loops for batch and m, and n
    (features) and k (the products' n); its lhs are the weights, which are in no buffer of the program. Its epilogue is
    a block of (sum, *indices of batch, m, n) that stores. Everything is f32."""

    products: tuple[Contraction, ...]
    weight: Block
    values: Contraction

    @property
    def scores(self) -> Contraction:
        """The first product, from which the weights come."""
        return self.products[0]


def chained_kernel(name: str, params: Sequence[Buffer], mark: Chained) -> Kernel:
    """Returns the kernel of `mark`."""
    builder = KernelBuilder(name)
    builder.params.extend(params)
    _Nest(builder, mark).emit()
    kernel = Kernel(name, list(params), builder.body, attention=mark)
    kernel.verify()
    return kernel


class _Nest(WeightedSums):
    def __init__(self, builder: KernelBuilder, mark: Chained) -> None:
        super().__init__(builder, mark.values)
        self._mark = mark

    def _tiles(self, sums: Buffer, indices: Sequence[Register]) -> Sequence[Register]:
        """Adds up the weighted values, one tile after the other."""
        b = self._b
        (keys,) = self._of("k")
        with b.sequential(-(-keys.extent // TILE)) as tiles:
            weights, first = b.scratch("f32", [TILE]), b.multiply(tiles.index, TILE)
            with b.parallel(TILE) as (place,):
                b.store(weights, self._or_zero(b.add(first, place), keys, self._weight), place)
            with b.parallel(*sums.shape) as features:
                self._values.update(zip(self._of("n"), features, strict=True))
                with b.reduction(TILE, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
                    value = self._or_zero(b.add(first, loop.index), keys, self._value)
                    loop.yield_(b.multiply(b.load(weights, loop.index), value))
                b.store(sums, b.add(b.load(sums, *features), loop.result), *features)
        return []

    def _or_zero(self, key: Register, keys: ContractionLoop, compute: Callable[[], Register]) -> Register:
        """Returns what is computed for a key: zero beyond the last one."""
        b = self._b
        with b.if_(b.compare("LT", key, keys.extent)) as branch:
            self._values[keys] = key
            for product in self._mark.products:
                self._values[next(loop for loop in product.loops if loop.role == "n")] = key
            branch.yield_(compute())
        with branch.otherwise():
            branch.yield_(b.constant(0.0, "f32"))
        return branch.results[0]

    def _weight(self) -> Register:
        b, sums = self._b, [self._sum(product) for product in self._mark.products]
        outer = [self._values[loop] for loop in self._mark.scores.loops if loop.role != "k"]
        (weight,) = b.inline(self._mark.weight, *sums, *outer)
        return weight

    def _sum(self, product: Contraction) -> Register:
        b, inner = self._b, [loop for loop in product.loops if loop.role == "k"]
        zero = b.constant(0.0, "f32")
        with b.reduction(*[loop.extent for loop in inner], inits=[zero], combiner="add") as loop:
            self._values.update(zip(inner, loop.indices, strict=True))
            every = [self._values[one] for one in product.loops]
            lhs = operand_element(b, product, product.lhs, product.lhs_prologue, every)
            rhs = operand_element(b, product, product.rhs, product.rhs_prologue, every)
            loop.yield_(b.multiply(lhs, rhs))
        return loop.result

    def _value(self) -> Register:
        values = self._mark.values
        every = [self._values[loop] for loop in values.loops]
        return operand_element(self._b, values, values.rhs, values.rhs_prologue, every)
