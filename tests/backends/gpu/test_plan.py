"""Plans: the host's steps, as data that can be written and read."""

from __future__ import annotations

import numpy as np

from trivium.backends.gpu import plan as plans
from trivium.backends.gpu.plan import (
    Call,
    Copy,
    Launched,
    Switch,
    TensorMap,
    While,
    Work,
    from_bytes,
    plan_of,
    to_bytes,
    walk,
)
from trivium.compiler.collectives import AllGather, AllReduce, CollectivePermute
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.program import (
    Arena,
    Array,
    Collective,
    Constant,
    HostCall,
    Input,
    Launch,
    Output,
    Program,
    PythonCall,
)
from trivium.compiler.program import Copy as CopyStep
from trivium.compiler.program import Switch as SwitchStep
from trivium.compiler.program import While as WhileStep


def negation() -> Launch:
    b = KernelBuilder("negate")
    source, target = b.input("x", "f32", ()), b.output("y", "f32", ())
    b.store(target, b.apply("negate", b.load(source)))
    return Launch(b.build(), (X, Y))


X, Y = Array("x", "f32", (), Input(0)), Array("y", "f32", (), Output(0))
FLAG = Array("flag", "i1", (), Arena(128))
PAIR = Array("pair", "f64", (3, 2), Constant(np.zeros((3, 2))), is_complex=True)


def program() -> tuple[Program, Launch]:
    launch = negation()
    steps = [
        WhileStep([launch], FLAG, [CopyStep(Y, X)]),
        SwitchStep(FLAG, [[], [HostCall("f", {"n": 3}, (PAIR,), (Y,))]]),
        PythonCall("g", "module {}", (X,), (Y,)),
    ]
    return Program("main", [X], [Y], steps, arena_size=129), launch


def test_a_plan_survives_being_written() -> None:
    whole, launch = program()
    maps = (TensorMap(1, 16, "bf16", (64, 20), (128,), (64, 32)),)
    plan = plan_of(whole, {launch: Work((Launched("k0", 2, 64, 0, maps),), launch.arguments)}, 128, 256)
    assert next(step for step in walk(plan.steps) if isinstance(step, plans.Launch)).maps == maps
    assert from_bytes(to_bytes(plan, b"binary")) == (plan, b"binary")


def test_values_and_steps() -> None:
    whole, launch = program()
    plan = plan_of(whole, {launch: Work((Launched("k0", 2, 64),), launch.arguments)}, 128, 256)
    assert [(value.storage, value.number) for value in plan.values] == [
        ("input", 0),
        ("output", 0),
        ("arena", 128),
        ("constant", 0),
    ]
    assert [value.nbytes for value in plan.values] == [4, 4, 1, 48]
    assert plan.values[3].is_complex
    loop, switch, call = plan.steps
    assert loop == While((plans.Launch("k0", 2, 64, 0, (0, 1), ""),), 2, (Copy(1, 0),))
    assert switch == Switch(2, ((), (Call("f", (("n", 3),), "", (3,), (1,)),)))
    assert call == Call("g", (), "module {}", (0,), (1,))
    assert len(list(walk(plan.steps))) == 6


def test_steps_in_which_devices_exchange_values() -> None:
    kinds = AllGather(0), AllReduce("add"), CollectivePermute()
    steps = [Collective(kind, ((0, 1),), X, Y, (2, 1)) for kind in kinds]
    plan = plan_of(Program("main", [X], [Y], list(steps)), {}, 0, 0)
    assert plan.steps == tuple(plans.Collective(kind, ((0, 1),), 0, 1, (2, 1)) for kind in kinds)
    assert from_bytes(to_bytes(plan, b"")) == (plan, b"")
