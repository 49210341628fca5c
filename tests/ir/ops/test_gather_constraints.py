"""Gather and scatter: what their constraints refuse. Each test breaks one thing in a valid use: rows of a 4x5 tensor,
or windows of a 3x4x5 tensor whose first dimension is a batch."""

from __future__ import annotations

import dataclasses

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.records import body
from tests.ir.ops.records.indexing import ADD_BATCHED, ADD_ROWS, BATCHED, ROWS
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, INDEX, TOKEN, Bounds, TensorType, tensor


def rows(operand=None, indices=None, sizes=(1, 5), result=None, **changed):
    numbers = dataclasses.replace(ROWS, **changed)
    return ops.Gather(operand or value(4, 5), indices or value(7, 1, of=I32), numbers, sizes, result=result)


def batched(sizes=(1, 1, 5), indices=None, **changed):
    numbers = dataclasses.replace(BATCHED, **changed)
    return ops.Gather(value(3, 4, 5), indices or value(2, 3, 1, of=I32), numbers, sizes)


def test_right_gathers_are_accepted():
    assert rows().result.type is tensor(7, 5)
    assert batched().result.type is tensor(2, 5, 3)
    assert rows(indices=value(None, 1, of=I32)).result.type is tensor(None, 5)


def test_gather_i1():
    with breaks("I1"):
        rows(operand=Value(TOKEN), result=tensor(7, 5))


def test_gather_i2():
    with breaks("I2"):
        rows(indices=value(7, 1))


def test_gather_c1():
    with breaks("C1"):
        rows(operand=value(4, 5, 6))


def test_gather_c2():
    with breaks("C2"):
        rows(index_vector_dim=3)


def test_gather_c3():
    with breaks("C3"):
        rows(indices=value(7, 2, of=I32))


def test_gather_c4():
    with breaks("C4"):
        rows(offset_dims=(1, 1), collapsed_slice_dims=())
    with breaks("C4"):
        rows(offset_dims=(1, 0), collapsed_slice_dims=())


def test_gather_c5():
    with breaks("C5"):
        rows(offset_dims=(2,))


def test_gather_c6():
    with breaks("C6"):
        batched(collapsed_slice_dims=(0,))


def test_gather_c7():
    with breaks("C7"):
        rows(offset_dims=(), collapsed_slice_dims=(1, 0))


def test_gather_c8():
    with breaks("C8"):
        rows(collapsed_slice_dims=(2,))


def test_gather_c9():
    with breaks("C9"):
        rows(sizes=(2, 5))


def test_gather_c10():
    with breaks("C10"):
        batched(offset_dims=(), operand_batching_dims=(2, 0))


def test_gather_c11():
    with breaks("C11"):
        batched(operand_batching_dims=(3,))


def test_gather_c12():
    with breaks("C12"):
        batched(sizes=(2, 1, 5))


def test_gather_c13():
    with breaks("C13"):
        batched(start_indices_batching_dims=(1, 1))


def test_gather_c14():
    with breaks("C14"):
        batched(start_indices_batching_dims=(3,))


def test_gather_c15():
    with breaks("C15"):
        batched(start_indices_batching_dims=(2,))


def test_gather_c16():
    with breaks("C16"):
        batched(start_indices_batching_dims=(0, 1))


def test_gather_c17():
    with breaks("C17"):
        batched(indices=value(2, 4, 1, of=I32))


def test_gather_c18():
    with breaks("C18"):
        batched(start_index_map=(0,))


def test_gather_c19():
    with breaks("C19"):
        rows(start_index_map=(2,))


def test_gather_c20():
    with breaks("C20"):
        rows(sizes=(1,))


def test_gather_c21():
    with breaks("C21"):
        rows(sizes=(1, 6))
    with breaks("C21"):
        rows(sizes=(1, -1))
    with breaks("C21"):
        rows(operand=Value(TensorType((4, None), F32, Bounds((None, 5)))), sizes=(1, 6), result=tensor(7, 6))


def test_gather_c22():
    with breaks("C22"):
        rows(result=tensor(7, 4))


def test_gather_c23():
    with breaks("C23"):
        rows(result=tensor(7, 5, of=F64))


def add_rows(inputs=None, indices=None, updates=None, computation=None, results=None, **changed):
    return ops.Scatter(
        inputs or [value(4, 5)],
        indices or value(7, 1, of=I32),
        updates or [value(7, 5)],
        dataclasses.replace(ADD_ROWS, **changed),
        update_computation=(computation or body(ops.Add, F32, F32))(),
        results=results,
    )


def add_batched(indices=None, updates=None, **changed):
    return ops.Scatter(
        [value(3, 4, 5)],
        indices or value(2, 3, 1, of=I32),
        [updates or value(2, 5, 3)],
        dataclasses.replace(ADD_BATCHED, **changed),
        update_computation=body(ops.Add, F32, F32)(),
    )


def test_right_scatters_are_accepted():
    assert add_rows().results[0].type is tensor(4, 5)
    assert add_batched().results[0].type is tensor(3, 4, 5)
    assert add_rows(computation=body(ops.Add, F64, F64)).results[0].type is tensor(4, 5, of=F64)
    assert add_rows(updates=[value(None, 3)]).results[0].type is tensor(4, 5)


def test_scatter_i1():
    with breaks("I1"):
        add_rows(inputs=[Value(TOKEN)])


def test_scatter_i2():
    with breaks("I2"):
        add_rows(indices=value(7, 1))
    with breaks("I2"):
        add_rows(indices=value(7, 1, of=INDEX))


def test_scatter_c1():
    with breaks("C1"):
        add_rows(
            inputs=[value(4, 5), value(4, 6)],
            updates=[value(7, 5), value(7, 5)],
            results=[tensor(4, 5), tensor(4, 5)],
        )


def test_scatter_c2():
    with breaks("C2"):
        add_rows(inputs=[value(4, 5, 6)])


def test_scatter_c3():
    with breaks("C3"):
        add_rows(
            inputs=[value(4, 5), value(4, 5)],
            updates=[value(7, 5), value(8, 5)],
            results=[tensor(4, 5), tensor(4, 5)],
        )


def test_scatter_c4():
    with breaks("C4"):
        add_rows(updates=[value(8, 5)])
    with breaks("C4"):
        add_rows(updates=[value(7, 6)])
    with breaks("C4"):
        add_rows(updates=[value(7, 5, 1)])


def test_scatter_c5():
    with breaks("C5"):
        add_rows(updates=[value(7, 5), value(7, 5)])
    with breaks("C5"):
        add_rows(inputs=(), results=[tensor(4, 5)], updates=[value(7, 5), value(7, 5)])


def test_scatter_c6():
    with breaks("C6"):
        add_rows(updates=[value(7, 5, of=F64)])


def test_scatter_c7():
    with breaks("C7"):
        add_rows(update_window_dims=(1, 1), inserted_window_dims=())
    with breaks("C7"):
        add_rows(update_window_dims=(1, 0), inserted_window_dims=())


def test_scatter_c8():
    with breaks("C8"):
        add_rows(update_window_dims=(2,))


def test_scatter_c9():
    with breaks("C9"):
        add_batched(inserted_window_dims=(0,))


def test_scatter_c10():
    with breaks("C10"):
        add_rows(update_window_dims=(), inserted_window_dims=(1, 0))


def test_scatter_c11():
    with breaks("C11"):
        add_rows(inserted_window_dims=(2,))


def test_scatter_c12():
    with breaks("C12"):
        add_batched(update_window_dims=(), input_batching_dims=(2, 0))


def test_scatter_c13():
    with breaks("C13"):
        add_batched(input_batching_dims=(3,))


def test_scatter_c14():
    with breaks("C14"):
        add_batched(scatter_indices_batching_dims=(1, 1))


def test_scatter_c15():
    with breaks("C15"):
        add_batched(scatter_indices_batching_dims=(3,))


def test_scatter_c16():
    with breaks("C16"):
        add_batched(scatter_indices_batching_dims=(2,))


def test_scatter_c17():
    with breaks("C17"):
        add_batched(scatter_indices_batching_dims=(0, 1))


def test_scatter_c18():
    with breaks("C18"):
        add_batched(indices=value(2, 4, 1, of=I32))


def test_scatter_c19():
    with breaks("C19"):
        add_rows(indices=value(7, 2, of=I32))


def test_scatter_c20():
    with breaks("C20"):
        add_batched(scatter_dims_to_operand_dims=(0,))


def test_scatter_c21():
    with breaks("C21"):
        add_rows(scatter_dims_to_operand_dims=(2,))


def test_scatter_c22():
    with breaks("C22"):
        add_rows(index_vector_dim=3)


def test_scatter_c23():
    with breaks("C23"):
        add_rows(computation=body(ops.Negate, F32))
    with breaks("C23"):
        add_rows(computation=body(ops.Add, I32, I32))


def test_scatter_c24():
    with breaks("C24"):
        add_rows(results=[tensor(4, 6)])


def test_scatter_c25():
    with breaks("C25"):
        add_rows(results=[tensor(4, 5, of=F64)])
