"""How sizes are computed, and where the space lies."""

import numpy as np

from tests.compiler.bounded.programs import as_list
from trivium import evaluate
from trivium.compiler.bounded.axes import Axis, Extent, simple
from trivium.compiler.bounded.writer import Bounded, Writer
from trivium.ir.core import Block, Region, Value
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.types import F32, I64, FunctionType, tensor

N: Extent = (2, 3, 2, 3)
M: Extent = (4, 4, 7, 7)
ROWS = Axis((N, M))


def made(w: Writer, block: Block, *results: Value) -> Module:
    w.add(FuncReturn(list(results)))
    kinds = [argument.type for argument in block.arguments], [value.type for value in results]
    return Module.build(functions=[Function("main", FunctionType(*map(tuple, kinds)), Region([block]))])


def test_a_size_is_computed_once_from_a_table_unless_the_program_has_it() -> None:
    block = Block([tensor(of=I64), tensor(of=I64)])
    n, combination = block.arguments
    w = Writer(block, len(N), combination)
    w.learn(Bounded(n, (), w.noted([np.array(number) for number in N])))
    assert w.size(N) is n
    assert w.size(M) is w.size(tuple(list(M)))
    module = made(w, block, w.size(M), w.size((5, 5, 5, 5)))
    for number in range(len(N)):
        assert as_list(evaluate(module, 0, number)) == [M[number], 5]


def test_elements_move_to_where_the_space_is_expected() -> None:
    block = Block([tensor(3 * 7, of=F32), tensor(of=I64)])
    x, combination = block.arguments
    w = Writer(block, len(N), combination)
    flat = w.with_simple(Bounded(x, (ROWS,)))
    assert flat.axes == (simple(ROWS.extent),)
    back = w.aligned(flat, (ROWS,))
    module = made(w, block, flat.value, back.value, w.mask(ROWS))
    for number, (n, m) in enumerate(zip(N, M, strict=True)):
        rows = np.full((3, 7), np.nan, np.float32)
        rows[:n, :m] = np.arange(n * m).reshape(n, m)
        one, other, mask = as_list(evaluate(module, rows.reshape(-1), np.int64(number)))
        np.testing.assert_array_equal(one[: n * m], np.arange(n * m))
        np.testing.assert_array_equal(other.reshape(3, 7)[:n, :m], rows[:n, :m])
        np.testing.assert_array_equal(mask, ~np.isnan(rows.reshape(-1)))
