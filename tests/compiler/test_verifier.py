"""Programs whose buffer plan is wrong are refused. The planner's own plans are verified for every record and random
program."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import Kernel, KernelBuilder
from trivium.compiler.program import (
    Arena,
    Array,
    Constant,
    Copy,
    HostCall,
    Input,
    Launch,
    Output,
    Program,
    Step,
    Storage,
    Switch,
    While,
)
from trivium.compiler.verifier import verify
from trivium.ir.errors import CompileError

N = 16


def moving(name: str, reverse: bool = False) -> Kernel:
    """Returns a kernel for y = x, or for x in reverse order."""
    b = KernelBuilder(name)
    x, y = b.input("x", "f32", (N,)), b.output("y", "f32", (N,))
    with b.parallel(N) as (i,):
        b.store(y, b.load(x, b.subtract(N - 1, i) if reverse else i), i)
    return b.build()


SAME, REVERSED = moving("same"), moving("reversed", reverse=True)


def value(name: str, storage: Storage) -> Array:
    return Array(name, "f32", (N,), storage)


X, Y = value("x", Input(0)), value("y", Output(0))


def program(*steps: Step, arena_size: int = 4 * N * 4) -> Program:
    return Program("p", [X], [Y], list(steps), arena_size)


def refused(message: str, *steps: Step, arena_size: int = 4 * N * 4) -> None:
    with pytest.raises(CompileError, match=message):
        verify(program(*steps, arena_size=arena_size))


def adding() -> Kernel:
    b = KernelBuilder("adding")
    x, y, z = b.input("x", "f32", (N,)), b.input("y", "f32", (N,)), b.output("z", "f32", (N,))
    with b.parallel(N) as (i,):
        b.store(z, b.add(b.load(x, i), b.load(y, i)), i)
    return b.build()


def test_a_correct_plan_is_accepted() -> None:
    a, b = value("a", Arena(0)), value("b", Arena(0))
    verify(program(Launch(SAME, (X, a)), Launch(SAME, (a, b)), Launch(REVERSED, (b, Y))))


def test_values_that_are_alive_together_share_no_bytes() -> None:
    a, b = value("a", Arena(0)), value("b", Arena(32))
    refused(
        "b: 16xf32 at arena 32 and a: 16xf32 at arena 0 share bytes, and are alive together|"
        "a: 16xf32 at arena 0 and b: 16xf32 at arena 32 share bytes, and are alive together",
        Launch(SAME, (X, a)), Launch(REVERSED, (X, b)), Launch(adding(), (a, b, Y)),
    )  # fmt: skip


def test_an_operand_that_is_needed_later_is_not_overwritten() -> None:
    a, b = value("a", Arena(0)), value("b", Arena(0))
    refused(
        "share bytes, and are alive together",
        Launch(SAME, (X, a)), Launch(SAME, (a, b)), Launch(adding(), (a, b, Y)),
    )  # fmt: skip


def test_a_kernel_that_reads_elsewhere_is_not_run_in_place() -> None:
    a, b = value("a", Arena(0)), value("b", Arena(0))
    refused(
        "launch of reversed: a: .* and b: .* share bytes, which params x and y may not",
        Launch(SAME, (X, a)), Launch(REVERSED, (a, b)), Launch(SAME, (b, Y)),
    )  # fmt: skip


def test_shared_arguments_begin_at_the_same_byte() -> None:
    a, b = value("a", Arena(0)), value("b", Arena(4))
    refused("which params x and y may not", Launch(SAME, (X, a)), Launch(SAME, (a, b)), Launch(SAME, (b, Y)))


def test_nothing_is_read_before_it_is_written() -> None:
    refused("a: 16xf32 at arena 0 is read before it is written", Copy(value("a", Arena(0)), Y))
    refused("y: 16xf32 at output 0 is read before it is written", Launch(SAME, (X, value("a", Arena(0)))))


def test_a_branch_that_writes_nothing_leaves_its_result_unwritten() -> None:
    which = Array("which", "i32", (), Constant(np.array(0, np.int32)))
    refused("y: .* is read before it is written", Switch(which, [[Copy(X, Y)], []]))


def test_what_a_loop_carries_stays_alive_while_it_runs() -> None:
    state, other = value("state", Arena(0)), value("other", Arena(0))
    going = Array("going", "i1", (), Arena(128))
    b = KernelBuilder("test")
    x, y = b.input("x", "f32", (N,)), b.output("y", "i1", ())
    b.store(y, b.compare("LT", b.load(x, 0), 1.0))
    test = Launch(b.build(), (state, going))
    loop = While([test], going, [Launch(SAME, (X, other)), Launch(adding(), (X, other, Y))])
    refused("share bytes, and are alive together", Launch(SAME, (X, state)), loop, Copy(state, Y))


def test_inputs_and_constants_are_not_written() -> None:
    constant = value("c", Constant(np.zeros(N, np.float32)))
    refused("a step writes c: 16xf32 at constant", Copy(X, constant), Copy(X, Y))
    refused("a step writes x: 16xf32 at input 0", HostCall("f", {}, (), (X,)), Copy(X, Y))


def test_an_argument_in_whose_memory_a_result_is_is_read_first() -> None:
    given, other = value("given", Input(0, 0)), value("other", Arena(0))

    def verified(*steps: Step) -> None:
        verify(Program("p", [given], [Y], list(steps), 4 * N))

    verified(Launch(SAME, (given, Y)))
    with pytest.raises(CompileError, match=r"given: .* at input 0 and result 0 and y: .* share bytes, which params"):
        verified(Launch(REVERSED, (given, Y)))
    with pytest.raises(CompileError, match="share bytes, and are alive together"):
        verified(Launch(SAME, (given, Y)), Launch(SAME, (given, other)))


def test_places_lie_inside_the_arena() -> None:
    a = value("a", Arena(64))
    refused("a reaches outside the arena of 100 bytes", Copy(X, a), Copy(a, Y), arena_size=100)


def test_temporaries_lie_inside_a_result() -> None:
    a = value("a", Output(0, 4))
    refused("a reaches outside result 0", Copy(X, a), Copy(X, Y))


def test_temporaries_are_not_in_a_result_that_is_computed() -> None:
    a, b = value("a", Output(0)), value("b", Arena(0))
    verify(program(Copy(X, a), Launch(SAME, (a, b)), Copy(b, Y)))
    refused("share bytes, and are alive together", Copy(X, a), Copy(X, Y), Launch(SAME, (a, b)))


@pytest.mark.parametrize("arguments", [(X,), (X, Y, Y)])
def test_launches_have_an_argument_for_each_parameter(arguments: tuple[Array, ...]) -> None:
    refused(f"launch of same has {len(arguments)} arguments, expected 2", Launch(SAME, arguments))
