"""The constraints of loops, branches, tuples and custom calls, each broken once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.ops.constraints import breaks, value
from trivium.ir.attributes import Dictionary, SymbolRef
from trivium.ir.builder import region
from trivium.ir.core import Region, Value
from trivium.ir.errors import ConstraintKind
from trivium.ir.func import Function, Module
from trivium.ir.ops import (
    Add,
    Case,
    Compare,
    ComparisonDirection,
    Composite,
    Constant,
    CustomCall,
    CustomCallApiVersion,
    GetTupleElement,
    If,
    OptimizationBarrier,
    OutputOperandAlias,
    Tuple,
    While,
)
from trivium.ir.types import F32, F64, I1, I32, I64, INDEX, BufferType, TupleType, Type, tensor


def holds(*kinds: Type) -> Region:
    """Returns a boolean."""
    return region(kinds, lambda b, x, *_: b.add(Compare(x, x, comparison_direction=ComparisonDirection.EQ)))


def same(*kinds: Type) -> Region:
    """Returns its arguments."""
    return region(kinds, lambda b, *values: values)


def gives(kind: Type = F32) -> Region:
    """A branch that returns one number."""
    return region([], lambda b: b.add(Constant(value=tensor(of=kind).dtype.type(1))))


def returning(value: Value) -> Region:
    """A branch that returns a value from outside."""
    return region([], lambda b: value)


# While


def test_while_c1() -> None:
    with breaks("C1"):
        While([value()], same(tensor()), same(tensor()))
    with breaks("C1"):
        While([value()], holds(tensor(of=F64)), same(tensor()))


def test_while_c2() -> None:
    with breaks("C2"):
        While([value()], holds(tensor()), holds(tensor()))
    with breaks("C2"):
        While([value()], holds(tensor()), same(tensor(), tensor()))


def test_while_c3() -> None:
    with breaks("C3"):
        While([value()], holds(tensor()), same(tensor()), results=[tensor(of=F64)])
    with breaks("C3"):
        While([value()], holds(tensor()), same(tensor()), results=[])


# If


def test_if_i1() -> None:
    with breaks("I1"):
        If(value(), gives(), gives())
    with breaks("I1"):
        If(value(1, of=I1), gives(), gives())


def test_if_c1() -> None:
    with breaks("C1"):
        If(value(of=I1), same(tensor()), gives())
    with breaks("C1"):
        If(value(of=I1), gives(), same(tensor()))


def test_if_c2() -> None:
    with breaks("C2"):
        If(value(of=I1), gives(), gives(F64))
    with breaks("C2"):
        If(value(of=I1), gives(), same())


def test_if_c3() -> None:
    with breaks("C3"):
        If(value(of=I1), gives(), gives(), results=[tensor(of=F64)])


def test_if_o1() -> None:
    buffer = Value(BufferType((2,), F32))
    with breaks("O1"):
        If(value(of=I1), returning(buffer), returning(buffer))


# Case


def test_case_i1() -> None:
    with breaks("I1"):
        Case(value(of=I64), [gives()])


def test_case_c1() -> None:
    with breaks("C1"):
        Case(value(of=I32), [])


def test_case_c2() -> None:
    with breaks("C2"):
        Case(value(of=I32), [gives(), same(tensor())])


def test_case_c3() -> None:
    with breaks("C3"):
        Case(value(of=I32), [gives(), gives(), gives(F64)])


def test_case_c4() -> None:
    with breaks("C4"):
        Case(value(of=I32), [gives()], results=[tensor(1)])


def test_case_o1() -> None:
    with breaks("O1"):
        Case(value(of=I32), [returning(Value(BufferType((2,), F32)))])


# Barriers and tuples


def test_optimization_barrier_c1() -> None:
    with breaks("C1"):
        OptimizationBarrier([value(), value(2)], results=[tensor(), tensor(3)])
    with breaks("C1"):
        OptimizationBarrier([value(), value(2)], results=[tensor()])


def test_tuple_c1() -> None:
    with breaks("C1"):
        Tuple([value(), value(2)], result=TupleType((tensor(), tensor(3))))
    with breaks("C1"):
        Tuple([value(), value(2)], result=TupleType((tensor(),)))


PAIR = TupleType((tensor(), tensor(2)))


def test_get_tuple_element_i1() -> None:
    with breaks("I1"):
        GetTupleElement(value(2), 0)


def test_get_tuple_element_c1() -> None:
    with breaks("C1"):
        GetTupleElement(Value(PAIR), 2)
    with breaks("C1"):
        GetTupleElement(Value(PAIR), -1)


def test_get_tuple_element_c2() -> None:
    with breaks("C2"):
        GetTupleElement(Value(PAIR), 0, result=tensor(2))


# Custom calls


def custom(*inputs: Value, **attributes: Any) -> None:
    CustomCall(inputs, call_target_name="tests.target", results=[tensor(2)], **attributes)


def test_custom_call_i4() -> None:
    with breaks("I4"):
        custom(backend_config=(1, 2))
    with breaks("I4"):
        custom(backend_config=Dictionary(a=True))
    with breaks("I4"):
        custom(backend_config="a", api_version=CustomCallApiVersion.API_VERSION_TYPED_FFI)
    custom(backend_config=Dictionary(a=True), api_version=4)


def test_custom_call_i5() -> None:
    with breaks("I5"):
        custom(api_version=5)


def test_custom_call_i7() -> None:
    with breaks("I7"):
        custom(value(2), output_operand_aliases=[OutputOperandAlias((), 1, ())])
    with breaks("I7"):
        custom(value(3), output_operand_aliases=[OutputOperandAlias((), 0, ())])
    with breaks("I7"):
        custom(value(2), output_operand_aliases=[OutputOperandAlias((0,), 0, ())])
    with breaks("I7"):
        custom(Value(PAIR), output_operand_aliases=[OutputOperandAlias((), 0, (2,))])
    custom(Value(PAIR), output_operand_aliases=[OutputOperandAlias((), 0, (1,))])


BUFFER = BufferType((2,), F32)


def call(target: str, inputs: list[Type], results: list[Type], *aliases: OutputOperandAlias) -> None:
    CustomCall(list(map(Value, inputs)), call_target_name=target, results=results, output_operand_aliases=aliases)


def test_custom_call_i1_of_buffers() -> None:
    call("CreateBuffer", [], [BUFFER])
    call("Pin", [tensor(2)], [BUFFER])
    call("Unpin", [BUFFER], [tensor(2)])
    for target, inputs, result in (
        ("CreateBuffer", [tensor(2)], BUFFER),
        ("Pin", [BUFFER], BUFFER),
        ("Pin", [tensor(2), tensor(2)], BUFFER),
        ("Unpin", [tensor(2)], tensor(2)),
    ):
        with breaks("I1"):
            call(target, inputs, [result])


def test_custom_call_o1_of_buffers() -> None:
    for target, kind, result in (
        ("Pin", tensor(2), tensor(2)),
        ("Pin", tensor(3), BUFFER),
        ("Unpin", BUFFER, BUFFER),
        ("Unpin", BUFFER, tensor(2, of=I32)),
    ):
        with breaks("O1"):
            call(target, [kind], [result])
    with breaks("O1"):
        call("CreateBuffer", [], [tensor(2)])


def test_custom_call_i7_of_buffers() -> None:
    pair = TupleType((BUFFER, BUFFER))
    call("t", [BUFFER, BUFFER], [pair], OutputOperandAlias((0,), 0, ()), OutputOperandAlias((1,), 1, ()))
    call("t", [BUFFER, BUFFER], [BUFFER], OutputOperandAlias((), 1, ()))
    with breaks("I7"):
        call("t", [BUFFER], [BUFFER])
    with breaks("I7"):
        call("t", [BUFFER], [pair], OutputOperandAlias((0,), 0, ()), OutputOperandAlias((1,), 0, ()))
    with breaks("I7"):
        call("t", [pair], [BUFFER], OutputOperandAlias((), 0, (0,)), OutputOperandAlias((), 0, (1,)))


def test_composite_c1() -> None:
    for name in ("", "twice", ".twice", "tests.", "tests.a b"):
        with breaks("C1"):
            Composite([value()], name=name, decomposition=SymbolRef("f"), composite_regions=[], results=[tensor()])


def composite(symbol: str, operand: Type, result: Type) -> Module:
    """Returns a program with a composite op. Its function `twice` takes a number and returns one."""
    twice = Function.build("twice", [tensor()], lambda b, x: b.add(Add(x, x)))

    def body(builder, x):
        op = Composite([x], name="t.twice", decomposition=SymbolRef(symbol), composite_regions=[], results=[result])
        return builder.add(op)

    return Module.build(functions=[Function.build("main", [operand], body), twice])


def test_composite_c2() -> None:
    with breaks("C2", ConstraintKind.SYMBOL):
        composite("thrice", tensor(), tensor()).verify()


def test_composite_c3() -> None:
    with breaks("C3", ConstraintKind.SYMBOL):
        composite("twice", tensor(2), tensor()).verify()


def test_composite_c4() -> None:
    with breaks("C4", ConstraintKind.SYMBOL):
        composite("twice", tensor(), tensor(of=F64)).verify()


# Values that no op can pass on


@pytest.mark.parametrize("kind", [tensor(2, of=INDEX), I32, TupleType((tensor(of=INDEX),))])
def test_values(kind: Type) -> None:
    given = Value(kind)
    with breaks("I1"):
        While([given], region([kind], lambda b, x: gives(I1).terminator.operands), same(kind))
    with breaks("I1"):
        OptimizationBarrier([given])
    with breaks("I1"):
        Tuple([given])
    with breaks("I1"):
        CustomCall([given], call_target_name="f", results=[tensor()])
    with breaks("O1"):
        CustomCall([value()], call_target_name="f", results=[kind])
    named = {"name": "a.b", "decomposition": SymbolRef("f"), "composite_regions": []}
    with breaks("I1"):
        Composite([given], **named, results=[tensor()])
    with breaks("O1"):
        Composite([value()], **named, results=[kind])
