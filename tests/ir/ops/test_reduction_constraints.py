"""The constraints of reductions, windows and sorts, each broken once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.ir.ops.constraints import breaks, value
from trivium.ir.builder import region
from trivium.ir.core import Region, Value
from trivium.ir.ops import Add, Compare, ComparisonDirection, Reduce, ReduceWindow, SelectAndScatter, Sort
from trivium.ir.types import F32, F64, I32, TOKEN, Type, tensor


def add(kind: Type = F32) -> Region:
    return region([tensor(of=kind)] * 2, lambda builder, lhs, rhs: builder.add(Add(lhs, rhs)))


def add_first_of_four() -> Region:
    """A reducer of two values that forgets to return the second."""
    return region([tensor()] * 4, lambda builder, lhs, _, rhs, __: builder.add(Add(lhs, rhs)))


def compare(*kinds: Type) -> Region:
    less = ComparisonDirection.LT
    scalars = [tensor(of=kind) for kind in kinds or (F32, F32)]
    return region(scalars, lambda builder, lhs, rhs, *_: builder.add(Compare(lhs, rhs, comparison_direction=less)))


def wrong() -> Region:
    """Returns its arguments."""
    return region([tensor()] * 2, lambda builder, lhs, rhs: [lhs, rhs])


def token() -> Value:
    return Value(TOKEN)


# Reduce


def reduce(
    inputs: Sequence[Value] | None = None,
    init_values: Sequence[Value] | None = None,
    dimensions: Sequence[int] = (0,),
    body: Region | None = None,
    **results: Any,
) -> None:
    Reduce(inputs or [value(2, 3)], init_values or [value()], tuple(dimensions), body or add(), **results)


def test_reduce_i1() -> None:
    with breaks("I1"):
        reduce(inputs=[token()])


def test_reduce_c1() -> None:
    with breaks("C1"):
        reduce(inputs=[value(2, 3), value(2, 4)], init_values=[value(), value()])


def test_reduce_c2() -> None:
    with breaks("C2"):
        reduce(init_values=[value(of=F64)])
    with breaks("C2"):
        reduce(init_values=[value(1)])


def test_reduce_c3() -> None:
    with breaks("C3"):
        Reduce([], [], (0,), add())
    with breaks("C3"):
        reduce(init_values=[value(), value()])
    with breaks("C3"):
        reduce(results=[])


def test_reduce_c4() -> None:
    with breaks("C4"):
        reduce(dimensions=[2])
    with breaks("C4"):
        reduce(dimensions=[-1])


def test_reduce_c5() -> None:
    with breaks("C5"):
        reduce(dimensions=[1, 1])


def test_reduce_c6() -> None:
    with breaks("C6"):
        reduce(body=wrong())
    with breaks("C6"):
        reduce(body=compare())
    with breaks("C6"):
        reduce(inputs=[value(2, 3, of=F64)], init_values=[value(of=F64)])
    with breaks("C6"):
        reduce(inputs=[value(2, 3), value(2, 3)], init_values=[value(), value()], body=add_first_of_four())


def test_reduce_c7() -> None:
    with breaks("C7"):
        reduce(results=[tensor(2)])
    with breaks("C7"):
        reduce(results=[TOKEN])


def test_reduce_c8() -> None:
    with breaks("C8"):
        reduce(results=[tensor(3, of=F64)])


# ReduceWindow


def window(
    inputs: Sequence[Value] | None = None,
    init_values: Sequence[Value] | None = None,
    sizes: Sequence[int] = (2, 2),
    body: Region | None = None,
    **more: Any,
) -> None:
    ReduceWindow(inputs or [value(4, 5)], init_values or [value()], tuple(sizes), body=body or add(), **more)


def test_reduce_window_i1() -> None:
    with breaks("I1"):
        window(inputs=[token()])


def test_reduce_window_c1() -> None:
    with breaks("C1"):
        ReduceWindow([], [], (1,), body=add())
    with breaks("C1"):
        window(init_values=[value(), value()])
    with breaks("C1"):
        window(results=[])


def test_reduce_window_c2() -> None:
    with breaks("C2"):
        window(inputs=[value(4, 5), value(4, 4)], init_values=[value(), value()])


def test_reduce_window_c3() -> None:
    with breaks("C3"):
        window(init_values=[value(of=I32)])


def test_reduce_window_c4() -> None:
    with breaks("C4"):
        window(sizes=[2])


def test_reduce_window_c5() -> None:
    with breaks("C5"):
        window(sizes=[2, 0])


def test_reduce_window_c6() -> None:
    with breaks("C6"):
        window(window_strides=[1])


def test_reduce_window_c7() -> None:
    with breaks("C7"):
        window(window_strides=[1, 0])


def test_reduce_window_c8() -> None:
    with breaks("C8"):
        window(base_dilations=[1, 1, 1])


def test_reduce_window_c9() -> None:
    with breaks("C9"):
        window(base_dilations=[0, 1])


def test_reduce_window_c10() -> None:
    with breaks("C10"):
        window(window_dilations=[])


def test_reduce_window_c11() -> None:
    with breaks("C11"):
        window(window_dilations=[-1, 1])


def test_reduce_window_c12() -> None:
    with breaks("C12"):
        window(padding=[(0, 0)])
    with breaks("C12"):
        window(padding=[(0, 0), (1,)])


def test_reduce_window_c13() -> None:
    with breaks("C13"):
        window(body=compare())


def test_reduce_window_c14() -> None:
    def both(builder, a, b, c, d):
        return builder.add(Add(a, c)), builder.add(Add(b, d))

    with breaks("C14"):
        window(
            inputs=[value(4, 5)] * 2,
            init_values=[value()] * 2,
            body=region([tensor()] * 4, both),
            results=[tensor(3, 4), tensor(3, 5)],
        )


def test_reduce_window_c15() -> None:
    with breaks("C15"):
        window(results=[tensor(4, 5)])


def test_reduce_window_c16() -> None:
    with breaks("C16"):
        window(results=[tensor(3, 4, of=F64)])


# SelectAndScatter


def scatter(
    operand: Value | None = None, source: Value | None = None, init_value: Value | None = None, **more: Any
) -> None:
    more = {"window_dimensions": (2, 2), "window_strides": (2, 2), "select": compare(), "scatter": add(), **more}
    SelectAndScatter(operand or value(4, 6), source or value(2, 3), init_value or value(), **more)


def test_select_and_scatter_i1() -> None:
    with breaks("I1"):
        scatter(operand=token())


def test_select_and_scatter_i2() -> None:
    with breaks("I2"):
        scatter(source=token())


def test_select_and_scatter_i3() -> None:
    with breaks("I3"):
        scatter(init_value=token())


def test_select_and_scatter_o1() -> None:
    with breaks("O1"):
        scatter(result=TOKEN)


def test_select_and_scatter_c1() -> None:
    with breaks("C1"):
        scatter(source=value(2, 3, of=F64))


def test_select_and_scatter_c2() -> None:
    with breaks("C2"):
        scatter(source=value(2, 2))


def test_select_and_scatter_c3() -> None:
    with breaks("C3"):
        scatter(init_value=value(of=I32))
    with breaks("C3"):
        scatter(init_value=value(1))


def test_select_and_scatter_c4() -> None:
    with breaks("C4"):
        scatter(window_dimensions=[2])
    with breaks("C4"):
        scatter(window_dimensions=None)


def test_select_and_scatter_c5() -> None:
    with breaks("C5"):
        scatter(window_dimensions=[0, 2])


def test_select_and_scatter_c6() -> None:
    with breaks("C6"):
        scatter(window_strides=[2])


def test_select_and_scatter_c7() -> None:
    with breaks("C7"):
        scatter(window_strides=[2, 0])


def test_select_and_scatter_c8() -> None:
    with breaks("C8"):
        scatter(padding=[(0, 0)])


def test_select_and_scatter_c9() -> None:
    with breaks("C9"):
        scatter(select=add())
    with breaks("C9"):
        scatter(select=compare(I32, I32))


def test_select_and_scatter_c10() -> None:
    with breaks("C10"):
        scatter(scatter=compare())


def test_select_and_scatter_c11() -> None:
    with breaks("C11"):
        scatter(result=tensor(4, 5))


def test_select_and_scatter_c12() -> None:
    with breaks("C12"):
        scatter(result=tensor(4, 6, of=F64))


# Sort


def sort(*inputs: Value, comparator: Region | None = None, **more: Any) -> None:
    Sort(inputs or [value(3, 4)], comparator=comparator or compare(), **more)


def test_sort_i1() -> None:
    with breaks("I1"):
        sort(token())


def test_sort_c1() -> None:
    with breaks("C1"):
        Sort([], comparator=compare())


def test_sort_c2() -> None:
    with breaks("C2"):
        sort(results=[tensor(3, 4), tensor(3, 4)])
    with breaks("C2"):
        sort(results=[tensor(3, 4, of=I32)])
    with breaks("C2"):
        sort(results=[TOKEN])


def test_sort_c3() -> None:
    with breaks("C3"):
        sort(value(3, 4), value(3, 5), comparator=compare(F32, F32, F32, F32))
    with breaks("C3"):
        sort(results=[tensor(3, 5)])


def test_sort_c4() -> None:
    with breaks("C4"):
        sort(dimension=2)
    with breaks("C4"):
        sort(dimension=-3)
    with breaks("C4"):
        sort(value())


def test_sort_c5() -> None:
    with breaks("C5"):
        sort(comparator=add())
    with breaks("C5"):
        sort(comparator=compare(I32, I32))
    with breaks("C5"):
        sort(comparator=compare(F32, F32, F32))
