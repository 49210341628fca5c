"""Calls of the host in programs, and that programs are data."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import numpy as np
import pytest

from tests.compiler.lowering.coverage import COMPILED, lowered
from tests.compiler.lowering.running import client, expect_same, program_of, run, some
from tests.compiler.targets import TARGET
from tests.ir.ops.records import Record
from trivium.compiler.lower import lower
from trivium.compiler.program import HostCall, Program, PythonCall, walk
from trivium.ir import ops
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import CompileError
from trivium.ir.ops import TransposeMode
from trivium.ir.text import parse
from trivium.ir.types import C64, F64, tensor

DATA = (str, int, float, bool, complex, type(None), np.ndarray, np.generic, np.dtype, Enum)


def held(value: object, seen: set[int]) -> Iterator[object]:
    """Yields everything that a value contains, directly and indirectly, down to plain data."""
    if isinstance(value, DATA) or id(value) in seen:
        return
    seen.add(id(value))
    yield value
    inner: list[object] = []
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    elif dataclasses.is_dataclass(value):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        inner = [value.__dict__] if hasattr(value, "__dict__") else []
    for each in inner:
        yield from held(each, seen)


def copied(program: Program) -> Program:
    """Copies a program by pickling, in a thread with a large stack: pickle recurs over the depth of expressions."""
    limit, size = sys.getrecursionlimit(), threading.stack_size(512 << 20)
    sys.setrecursionlimit(100_000)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: pickle.loads(pickle.dumps(program))).result()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED])
def test_programs_are_data(record):
    """No record's program contains anything that can be called, or that enters Python; a pickled copy is equal."""
    program = dataclasses.replace(lowered(record), graph=None)  # the graph is kept for inspection, not to be run
    assert [value for value in held(program, set()) if callable(value)] == []
    assert str(copied(program)) == str(program)
    assert [step for step in walk(program.steps) if isinstance(step, PythonCall)] == []
    names = {step.target for step in walk(program.steps) if isinstance(step, HostCall)}
    assert names <= {"cholesky", "triangular_solve", "trivium.random_state"}


def test_a_copy_of_its_bytes_runs():
    x = np.array([[4, 2], [2, 5]], np.float32)
    program = lowered(Record(ops.Cholesky, (x,), {"lower": True}))
    (found,) = run(copied(program), [x])
    np.testing.assert_allclose(found, np.linalg.cholesky(x), rtol=1e-6)


def test_the_text_of_calls():
    matrix, right = tensor(2, 3, 3, of=F64), tensor(2, 3, 4, of=F64)

    def main(b, a, x):
        factor = b.add(ops.Cholesky(a, lower=True))
        options = {"left_side": True, "lower": True, "unit_diagonal": False}
        return b.add(ops.TriangularSolve(factor, x, **options, transpose_a=TransposeMode.NO_TRANSPOSE))

    text = str(lower(program_of([matrix, right], main), TARGET))
    assert "call @cholesky(arg0) {batch = 2, order = 3, lower = 1} to (t0)" in text
    assert "call @triangular_solve(t0, arg1) {batch = 2, rows = 3, columns = 4, left_side = 1, lower = 1" in text
    assert "python" not in text


def test_calls_of_python():
    """The program's text shows that the interpreter is entered; the op is stored as text."""
    register_custom_call("test.mirror", evaluate=lambda op, x: x[::-1] * 2)
    try:

        def main(b, x):
            (mirrored,) = b.add(ops.CustomCall([b.add(ops.Tanh(x))], "test.mirror", results=[x.type]))
            return b.add(ops.Add(mirrored, x))

        program = expect_same(program_of([tensor(5)], main), [some(5)])
        assert "python call @test.mirror(t0) to (t1)" in str(program)
        (call,) = (step for step in program.steps if isinstance(step, PythonCall))
        (op,) = (op for op in parse(call.program).walk() if isinstance(op, ops.CustomCall))
        assert (op.call_target_name, op.result_types) == ("test.mirror", (tensor(5),))
        copy = copied(program)
        np.testing.assert_array_equal(run(copy, [some(5)])[0], run(program, [some(5)])[0])
        numbers = (some(3) + 1j * some(3, seed=1)).astype(np.complex64)
        expect_same(program_of([tensor(3, of=C64)], main), [numbers])
    finally:
        del CUSTOM_CALLS["test.mirror"]


def test_functions_that_a_call_names_come_with_it():
    def folded(op, x):
        from trivium.ir.interpreter import Interpreter

        call = Interpreter(op.parent_op.parent_op).call
        return call(op.called_computations[0].name, [x])[0] + x

    register_custom_call("test.twice", evaluate=folded)
    try:
        module = parse("""
          func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
            %0 = stablehlo.custom_call @test.twice(%x) {called_computations = [@square]}
              : (tensor<3xf32>) -> tensor<3xf32>
            return %0 : tensor<3xf32>
          }
          func.func private @square(%x: tensor<3xf32>) -> tensor<3xf32> {
            %0 = stablehlo.multiply %x, %x : tensor<3xf32>
            return %0 : tensor<3xf32>
          }""")
        expect_same(module, [some(3)])
    finally:
        del CUSTOM_CALLS["test.twice"]


def test_what_is_empty_is_not_called():
    program = lower(program_of([tensor(0, 3, 3)], lambda b, x: b.add(ops.Cholesky(x, lower=True))), TARGET)
    assert not [step for step in walk(program.steps) if isinstance(step, HostCall)]
    assert run(program, [np.zeros((0, 3, 3), np.float32)])[0].shape == (0, 3, 3)


def test_unknown_custom_call_is_named():
    module = program_of([tensor(5)], lambda b, x: b.add(ops.CustomCall([x], "nobody.knows", results=[x.type])))
    with pytest.raises(CompileError, match=r"'nobody\.knows', which is not registered"):
        lower(module, TARGET)


def test_unknown_function_of_the_host_is_named():
    program = lower(program_of([tensor(3, 3)], lambda b, x: b.add(ops.Cholesky(x, lower=True))), TARGET)
    (call,) = (step for step in program.steps if isinstance(step, HostCall))
    call.target = "nobody.knows"
    with pytest.raises(CompileError, match=r"no host function 'nobody\.knows' of \(f32\)"):
        client().load_program(program)


def test_the_host_gets_what_is_reshaped_in_its_shape():
    def main(b, x):
        square = b.add(ops.Reshape(x, result=tensor(2, 2)))
        return b.add(ops.Cholesky(square, lower=True)), b.add(ops.Reshape(square, result=tensor(4, 1)))

    expect_same(program_of([tensor(4)], main), [np.array([4, 2, 2, 5], np.float32)])
