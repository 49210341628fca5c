"""When values are alive: over plain steps, around loops and through branches."""

from __future__ import annotations

from trivium.compiler.liveness import Liveness
from trivium.compiler.program import Arena, Array, Copy, HostCall, Input, Output, Program, Step, Storage, Switch, While


def value(name: str, storage: Storage | None = None) -> Array:
    return Array(name, "f32", (), storage or Arena())


def call(reads: tuple[Array, ...], writes: tuple[Array, ...]) -> HostCall:
    return HostCall("f", {}, reads, writes)


def points(liveness: Liveness, value: Array) -> list[int]:
    bits = liveness.points[value]
    return [point for point in range(bits.bit_length()) if bits >> point & 1]


X, Y = value("x", Input(0)), value("y", Output(0))


def liveness(*steps: Step) -> Liveness:
    return Liveness(Program("p", [X], [Y], list(steps)))


def test_from_the_step_that_writes_to_the_last_that_reads() -> None:
    a, b = value("a"), value("b")
    found = liveness(call((X,), (a,)), call((a,), (b,)), call((b,), (Y,)))
    assert points(found, X) == [0]
    assert points(found, a) == [0, 1, 2]
    assert points(found, b) == [2, 3, 4]
    assert points(found, Y) == [4, 5]
    assert found.entry == [X]


def test_both_ends_of_a_copy_may_be_one() -> None:
    a = value("a")
    found = liveness(call((X,), (a,)), Copy(a, Y))
    assert points(found, a) == [0, 1, 2]
    assert points(found, Y) == [3]
    assert not found.points[a] & found.points[Y]


def test_a_value_that_nobody_reads_is_alive_while_it_is_written() -> None:
    a = value("a")
    found = liveness(call((X,), (a,)), Copy(X, Y))
    assert points(found, a) == [0, 1]


def test_what_a_loop_carries_is_alive_all_around_it() -> None:
    carried, going, before, inside = value("carried"), value("going"), value("before"), value("inside")
    loop = While([call((carried,), (going,))], going, [call((carried, before), (inside,)), Copy(inside, carried)])
    found = liveness(call((X,), (before,)), Copy(X, carried), loop, Copy(carried, Y))
    steps = {"loop": 2, "condition": 3, "body": 4, "back": 5}
    assert all(2 * steps[name] in points(found, before) for name in steps)
    assert 2 * steps["back"] not in points(found, carried)  # the copy that writes it
    assert 2 * steps["body"] in points(found, carried)
    assert points(found, inside) == [8, 9, 10]


def test_each_branch_has_its_own_values() -> None:
    which, a, b = value("which"), value("a"), value("b")
    branches: list[list[Step]] = [[call((X,), (a,)), Copy(a, Y)], [call((X,), (b,)), Copy(b, Y)]]
    found = liveness(call((X,), (which,)), Switch(which, branches))
    assert not found.points[a] & found.points[b]
    assert points(found, which) == [0, 1, 2]


def test_what_is_read_before_it_is_written_is_alive_at_the_beginning() -> None:
    a = value("a")
    assert set(liveness(call((a,), (Y,))).entry) == {a}
