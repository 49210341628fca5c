"""How sizes are computed, and where the space lies."""

import numpy as np

from tests.compiler.bounded.programs import as_list
from trivium import evaluate
from trivium.compiler.bounded.axes import Axis, Extent, simple
from trivium.compiler.bounded.writer import Bounded, Writer
from trivium.ir.core import Block, Region, Value
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.types import F32, FunctionType, tensor

N: Extent = (2, 3, 2, 3)
M: Extent = (4, 4, 7, 7)
ROWS = Axis((N, M))


def made(w: Writer, block: Block, *results: Value) -> Module:
    w.add(FuncReturn(list(results)))
    kinds = [argument.type for argument in block.arguments], [value.type for value in results]
    return Module.build(functions=[Function("main", FunctionType(*map(tuple, kinds)), Region([block]))])


def test_extents_are_arguments_of_the_program() -> None:
    block = Block()
    w = Writer(block, len(N))
    inside = w.inside(Block())
    assert inside.size(N) is w.size(N) is block.arguments[0]
    assert w.size(M) is w.size(tuple(list(M))) is block.arguments[1]
    assert [w.end(extent) for extent in (M, N, (5, 5, 5, 5))] == [1, 0, None]
    module = made(w, block, w.size(M), w.size((5, 5, 5, 5)))
    for n, m in zip(N, M, strict=True):
        assert as_list(evaluate(module, n, m)) == [m, 5]


def test_elements_move_to_where_the_space_is_expected() -> None:
    block = Block([tensor(3 * 7, of=F32)])
    (x,) = block.arguments
    w = Writer(block, len(N))
    flat = w.with_simple(Bounded(x, (ROWS,)))
    assert flat.axes == (simple(ROWS.extent),)
    back = w.aligned(flat, (ROWS,))
    module = made(w, block, flat.value, back.value, w.mask(ROWS))
    for number, (n, m) in enumerate(zip(N, M, strict=True)):
        rows = np.full((3, 7), np.nan, np.float32)
        rows[:n, :m] = np.arange(n * m).reshape(n, m)
        one, other, mask = as_list(evaluate(module, rows.reshape(-1), *(extent[number] for extent in w.sizes)))
        np.testing.assert_array_equal(one[: n * m], np.arange(n * m))
        np.testing.assert_array_equal(other.reshape(3, 7)[:n, :m], rows[:n, :m])
        np.testing.assert_array_equal(mask, ~np.isnan(rows.reshape(-1)))
