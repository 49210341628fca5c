"""Programs as data: their text, the values and kernels that they contain, what each step reads and writes, and how
values are replaced."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.collectives import AllReduce, CollectivePermute
from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.program import (
    Arena,
    Array,
    Collective,
    Constant,
    Copy,
    HostCall,
    Input,
    Launch,
    Output,
    Program,
    PythonCall,
    Step,
    Switch,
    While,
    describe,
    nested,
    operands,
    reads,
    replace_values,
    walk,
    writes,
)
from trivium.ir.text import parse


def value(name: str, storage=None, shape: tuple[int, ...] = (4, 8), dtype: str = "f32") -> Array:
    return Array(name, dtype, shape, Arena(0) if storage is None else storage)


X, Y, T = value("x", Input(0)), value("y", Output(0)), value("t", Arena(None))
PREDICATE, INDEX = value("p", Arena(256), (), "i1"), value("i", Input(1), (), "i32")
C = value("c", Constant(np.zeros((4, 8), np.float32)))
KERNEL, OTHER = scaled(), scaled("other")


PLACED = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.abs %x : tensor<f32> loc("model.py":3:1)
  %1 = stablehlo.negate %0 : tensor<f32> loc(unknown)
  return %1 : tensor<f32>
}
"""


def adding() -> Kernel:
    """z += x"""
    b = KernelBuilder("adding")
    x, z = b.input("x", "f32", (32,)), b.inout("z", "f32", (32,))
    with b.parallel(32) as (i,):
        b.store(z, b.add(b.load(x, i), b.load(z, i)), i)
    return b.build()


def sample() -> Program:
    """A step of every kind."""
    here, elsewhere, *_ = parse(PLACED).main.body.block
    loop = While([Launch(OTHER, (C, T))], PREDICATE, [Launch(KERNEL, (T, Y)), Switch(INDEX, [[Copy(Y, T)], []])])
    steps: list[Step] = [
        Launch(KERNEL, (X, T), (here, elsewhere, here)),
        loop,
        HostCall("cholesky", {"batch": 2, "order": 4}, (T,), (Y,)),
        PythonCall("my.call", "module {}", (T, C), (Y,)),
        Collective(AllReduce("add"), ((0, 1), (2, 3)), T, Y),
        Copy(T, Y),
    ]
    return Program("main", [X, INDEX], [Y], steps, 512)


def test_text() -> None:
    assert (
        str(sample())
        == """\
program @main (arena 512 bytes) {
  x: 4x8xf32 at input 0
  i: i32 at input 1
  y: 4x8xf32 at output 0
  t: 4x8xf32 at arena ?
  p: i1 at arena 256
  c: 4x8xf32 at constant
  launch @scaled(x, t)  // model.py:3:1
  while {
    launch @other(c, t)
  } p {
    launch @scaled(t, y)
    switch i { case 0:
      copy y to t
    case 1:
    }
  }
  call @cholesky(t) {batch = 2, order = 4} to (y)
  python call @my.call(t, c) to (y)
  all_reduce combiner=add of [[0, 1], [2, 3]] t to y
  copy t to y
}"""
    )


def test_text_of_nothing() -> None:
    assert str(Program("empty")) == "program @empty (arena 0 bytes) {\n}"


def test_values_come_once_inputs_and_outputs_first() -> None:
    assert sample().values() == [X, INDEX, Y, T, PREDICATE, C]


def test_kernels_come_once_in_the_order_of_first_use() -> None:
    program = sample()
    assert program.kernels() == [KERNEL, OTHER]
    # Two kernels with the same text are still two kernels.
    program.steps.append(Launch(scaled(), (X, Y)))
    assert len(program.kernels()) == 3


def test_steps_outer_before_inner() -> None:
    program = sample()
    _, loop, *_ = program.steps
    kinds = [type(step).__name__ for step in walk(program.steps)]
    assert kinds == [
        "Launch", "While", "Launch", "Launch", "Switch", "Copy", "HostCall", "PythonCall", "Collective", "Copy",
    ]  # fmt: skip
    assert isinstance(loop, While)
    assert nested(loop) == [loop.condition, loop.body]
    assert nested(program.steps[0]) == []


STEPS: dict[str, tuple[Step, tuple, tuple]] = {
    "launch": (Launch(KERNEL, (X, Y)), (X,), (Y,)),
    "update": (Launch(adding(), (X, Y)), (X, Y), (Y,)),
    "copy": (Copy(X, Y), (X,), (Y,)),
    "while": (While([], PREDICATE, [Copy(X, Y)]), (PREDICATE,), ()),
    "switch": (Switch(INDEX, [[Copy(X, Y)]]), (INDEX,), ()),
    "host": (HostCall("f", {}, (X, C), (T, Y)), (X, C), (T, Y)),
    "python": (PythonCall("f", "", (X,), (Y,)), (X,), (Y,)),
    "collective": (Collective(CollectivePermute(), ((0, 1),), X, Y), (X,), (Y,)),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_a_step_reads_and_writes(name: str) -> None:
    step, read, written = STEPS[name]
    assert reads(step) == read
    assert writes(step) == written
    assert set(operands(step)) == {*read, *written}


def test_values_are_replaced_everywhere() -> None:
    program = sample()
    names = {old: value(f"new_{old.name}", old.storage, old.shape, old.dtype) for old in (X, Y, T, PREDICATE, INDEX, C)}
    wanted = [tuple(names[old] for old in operands(step)) for step in walk(program.steps)]
    replace_values(program.steps, names)
    assert [operands(step) for step in walk(program.steps)] == wanted


def test_values_without_another_stay() -> None:
    program = sample()
    replace_values(program.steps, {T: C})
    found = {each for step in walk(program.steps) for each in operands(step)}
    assert found == {X, Y, PREDICATE, INDEX, C}
    replace_values(program.steps, {})
    assert {each for step in walk(program.steps) for each in operands(step)} == found


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [("f64", (2, 3), 48), ("i1", (5,), 5), ("bf16", (), 2), ("i4", (3,), 3), ("f32", (0, 2), 0)],
)
def test_sizes(dtype: str, shape: tuple[int, ...], nbytes: int) -> None:
    assert value("v", shape=shape, dtype=dtype).nbytes == nbytes


def test_lines_of_values() -> None:
    pair = Array("z", "f32", (3, 2), Output(1), is_complex=True)
    assert describe(pair) == "z: 3x2xf32 at output 1"
    assert describe(value("s", Arena(64), ())) == "s: f32 at arena 64"


def test_what_is_exchanged_may_have_another_shape() -> None:
    assert Collective(AllReduce("add"), (), X, Y).shape == (4, 8)
    assert Collective(AllReduce("add"), (), X, Y, (2, 16)).shape == (2, 16)
