"""Foreign functions: a handler that is written here, by the published ABI, receives the values, layouts and attributes
of a program's call."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

import trivium
from trivium.backends.plugin.foreign import (
    STAGES,
    TYPES,
    handlers_of,
    register,
    register_foreign_function,
    register_foreign_functions,
    register_targets,
    register_type,
)
from trivium.backends.plugin.foreign import registered as registered_natively
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.types import type_of
from trivium.pjrt.foreign import address, handler

TARGET = "test.foreign"
RECORD = (("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p))


def structure(**fields: object) -> type[ctypes.Structure]:
    return type("Structure", (ctypes.Structure,), {"_fields_": (*RECORD, *fields.items())})


LIST = {"size": ctypes.c_int64, "types": ctypes.POINTER(ctypes.c_int32), "places": ctypes.POINTER(ctypes.c_void_p)}
List = structure(**LIST)
Attributes = structure(
    size=ctypes.c_int64, types=ctypes.POINTER(ctypes.c_int32), names=ctypes.POINTER(ctypes.c_void_p),
    places=ctypes.POINTER(ctypes.c_void_p),
)  # fmt: skip
Frame = structure(
    api=ctypes.c_void_p, context=ctypes.c_void_p, stage=ctypes.c_int32, arguments=List, results=List,
    attributes=Attributes, future=ctypes.c_void_p,
)  # fmt: skip
Buffer = structure(dtype=ctypes.c_int32, data=ctypes.c_void_p, rank=ctypes.c_int64, dims=ctypes.POINTER(ctypes.c_int64))
HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Frame))


class Span(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int32), ("value", ctypes.c_void_p))


class Array(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int32), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class Seen(NamedTuple):
    """An argument or result, as the handler receives it."""

    dtype: int
    shape: tuple[int, ...]
    data: int


def buffers(values: ctypes.Structure) -> list[Seen]:
    found = [Buffer.from_address(values.places[n]) for n in range(values.size)]
    return [Seen(b.dtype, tuple(b.dims[: b.rank]), b.data) for b in found]


def text_of(address: int) -> str:
    span = Span.from_address(address)
    return ctypes.string_at(span.pointer, span.size).decode()


def attributes_of(found: ctypes.Structure) -> dict[str, object]:
    return {text_of(found.names[n]): attribute(found.types[n], found.places[n]) for n in range(found.size)}


def attribute(kind: int, address: int) -> object:
    """Returns numbers as (number of the type, bytes)."""
    if kind == 1:
        array = Array.from_address(address)
        return array.dtype, array.size, array.data
    if kind == 2:
        return attributes_of(Attributes.from_address(address))
    if kind == 3:
        scalar = Scalar.from_address(address)
        return scalar.dtype, scalar.value
    return text_of(address)


@pytest.fixture
def registered() -> Iterator[Callable[[Callable[[ctypes.Structure], None]], None]]:
    """Registers a function of frames as a handler of calls of the target."""
    kept = []

    def register(function: Callable[[ctypes.Structure], None]) -> None:
        def handler(frame: ctypes._Pointer) -> None:
            if not frame.contents.extensions:  # otherwise it asks for the version; the answer is 0
                function(frame.contents)

        kept.append(HANDLER(handler))
        address = ctypes.cast(kept[-1], ctypes.c_void_p).value
        assert address is not None
        register_foreign_function(TARGET, {"execute": address})

    yield register
    CUSTOM_CALLS.pop(TARGET, None)


def call(arguments: list[np.ndarray], result: str, attributes: str = "") -> np.ndarray:
    """Compiles a call of the target, and runs it."""
    kinds = [str(type_of(argument)) for argument in arguments]
    names = [f"%a{n}" for n in range(len(arguments))]
    given = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    module = trivium.parse(f"""func.func @main({given}) -> {result} {{
      %0 = stablehlo.custom_call @{TARGET}({", ".join(names)}) {{api_version = 4 : i32{attributes}}}
        : ({", ".join(kinds)}) -> {result}
      return %0 : {result}
    }}""")
    return trivium.compile(module)(*arguments)[0]


def test_values(registered: Callable) -> None:
    seen = []

    def handler(frame: ctypes.Structure) -> None:
        (x, y), (z,) = buffers(frame.arguments), buffers(frame.results)
        seen.append((frame.stage, x[:2], y[:2], z[:2]))
        numbers = np.ctypeslib.as_array((ctypes.c_float * 6).from_address(x.data))
        factor = ctypes.c_int16.from_address(y.data).value
        np.ctypeslib.as_array((ctypes.c_double * 6).from_address(z.data))[:] = factor * numbers

    registered(handler)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = call([x, np.array(7, np.int16)], "tensor<3x2xf64>")
    np.testing.assert_array_equal(found, (7.0 * x).reshape(3, 2))
    assert seen == [(3, (TYPES["float32"], (2, 3)), (TYPES["int16"], ()), (TYPES["float64"], (3, 2)))]


def test_layouts(registered: Callable) -> None:
    """A handler that requires column-major operands gets them, and its results are transposed back."""

    def handler(frame: ctypes.Structure) -> None:
        (x,), (y,) = buffers(frame.arguments), buffers(frame.results)
        assert x.shape == y.shape == (2, 3)
        memory = [np.ctypeslib.as_array((ctypes.c_float * 6).from_address(each.data)) for each in (x, y)]
        assert memory[0].tolist() == [0, 3, 1, 4, 2, 5]
        memory[1][:] = np.arange(6)

    registered(handler)
    columns = "[dense<[0, 1]> : tensor<2xindex>]"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = call([x], "tensor<2x3xf32>", f", operand_layouts = {columns}, result_layouts = {columns}")
    assert found.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_results_in_the_memory_of_arguments(registered: Callable) -> None:
    """The result starts with the argument's contents; the program's own argument does not change."""

    def handler(frame: ctypes.Structure) -> None:
        (x,), (y,) = buffers(frame.arguments), buffers(frame.results)
        assert x.data == y.data
        np.ctypeslib.as_array((ctypes.c_float * 4).from_address(y.data))[:] *= 3

    registered(handler)
    x = np.arange(4, dtype=np.float32)
    alias = "#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>"
    found = call([x], "tensor<4xf32>", f", output_operand_aliases = [{alias}]")
    assert found.tolist() == [0, 3, 6, 9]
    assert x.tolist() == [0, 1, 2, 3]


def test_attributes(registered: Callable) -> None:
    """Attributes of all forms, in the order of their names, by which handlers look them up."""
    seen: dict[str, object] = {}
    numbers: dict[str, float] = {}

    def handler(frame: ctypes.Structure) -> None:
        found = attributes_of(frame.attributes)
        assert list(found) == sorted(found)
        seen.update(found)
        kinds = {"count": ctypes.c_int64, "flag": ctypes.c_bool, "half": ctypes.c_float, "narrow": ctypes.c_int8}
        for name, kind in kinds.items():
            dtype, address = found[name]  # type: ignore[misc]
            numbers[name] = kind.from_address(address).value
        dtype, size, data = found["many"]  # type: ignore[misc]
        numbers["many"] = list((ctypes.c_int32 * size).from_address(data))
        assert dtype == TYPES["int32"]

    registered(handler)
    config = (
        'text = "ein Wort: ü", count = 3 : i64, flag = true, half = 0.5 : f32, narrow = -1 : i8, '
        'many = dense<[4, 5]> : tensor<2xi32>, more = {inner = "x"}'
    )
    call([np.zeros(1, np.float32)], "tensor<1xf32>", f", backend_config = {{{config}}}")
    assert (seen["text"], seen["more"]) == ("ein Wort: ü", {"inner": "x"})
    assert numbers == {"count": 3, "flag": True, "half": 0.5, "narrow": -1, "many": [4, 5]}
    types = {name: seen[name][0] for name in ("count", "flag", "half", "narrow")}  # type: ignore[index]
    assert types == {"count": TYPES["int64"], "flag": TYPES["bool"], "half": TYPES["float32"], "narrow": TYPES["int8"]}


def test_attributes_without_a_form_are_refused(registered: Callable) -> None:
    registered(lambda frame: None)
    with pytest.raises(CompileError, match=r"attribute kind has .*, for which foreign functions have no form"):
        call([np.zeros(1, np.float32)], "tensor<1xf32>", ", backend_config = {kind = tensor<2xf32>}")


def test_types_that_the_interface_has_are_named_as_numpy_names_them() -> None:
    for name in TYPES.keys() - {"token"}:
        assert np.dtype(getattr(ml_dtypes, name, name)).name == name
    assert len(set(TYPES.values())) == len(TYPES)


# Finding handlers


def capsule(address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, b"whatever", None)


def test_capsules() -> None:
    assert handlers_of({"execute": capsule(77), "prepare": capsule(78)}) == {"execute": 77, "prepare": 78}
    for stages in (("prepare",), ("execute", "finish"), ()):
        with pytest.raises(ExecutionError, match=r"a foreign function has the stages .*expected execute among"):
            handlers_of({stage: capsule(7) for stage in stages})
    assert STAGES[-1] == "execute"


def test_the_first_registry_that_has_a_target_is_used() -> None:
    asked = []

    def nobody(target: str) -> None:
        asked.append(("nobody", target))

    def somebody(target: str) -> dict[str, object]:
        asked.append(("somebody", target))
        return {"execute": capsule(7)}

    known = next(iter(CUSTOM_CALLS))
    try:
        register_targets({TARGET, known}, [nobody, somebody, nobody])
        assert asked == [("nobody", TARGET), ("somebody", TARGET)]
        register_targets({TARGET}, [somebody])
        assert len(asked) == 2
        assert CUSTOM_CALLS[TARGET].native is not None
    finally:
        CUSTOM_CALLS.pop(TARGET, None)


def test_targets_of_a_module_are_found_and_unknown_ones_stay_unknown() -> None:
    text = f"""func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.custom_call @{TARGET}(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}"""
    asked = []
    register_foreign_functions(trivium.parse(text), [asked.append])
    assert asked == [TARGET]
    with pytest.raises(CompileError, match=f"custom_call has the target '{TARGET}', which is not registered"):
        trivium.compile(trivium.parse(text))


# Functions and types that hosts register


def test_handlers_that_hosts_register_are_found_first() -> None:
    name = f"{TARGET}.registered"
    stages = {"instantiate": 71, "execute": 72}
    assert registered_natively(name) is None
    register(name, stages)
    register(name, stages)
    assert registered_natively(name) == stages
    with pytest.raises(ExecutionError, match=f"foreign function '{name}' has been registered otherwise"):
        register(name, {"execute": 72})
    asked: list[str] = []
    try:
        register_targets({name}, [asked.append])
        assert not asked
        assert CUSTOM_CALLS[name].native is not None
    finally:
        CUSTOM_CALLS.pop(name, None)


class Info(ctypes.Structure):
    _fields_ = (*RECORD, ("deleter", ctypes.c_void_p))


def test_states_are_deleted_with_their_calls() -> None:
    """Also of types whose number another host has given."""
    deleted: list[int] = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)
    info = Info(ctypes.sizeof(Info), None, address(deleter))
    for name, given in (("test.own", 0), ("test.other", 4711)):
        number = ctypes.c_int64(given)
        for _ in range(2):
            register_type(name, ctypes.addressof(number), ctypes.addressof(info))
        assert number.value == given or given == 0 < number.value
        with pytest.raises(ExecutionError, match=f"type '{name}' has been registered otherwise"):
            register_type(name, ctypes.addressof(number), None)
        with pytest.raises(ExecutionError, match=r"the number of type .test.third. has been registered otherwise"):
            register_type("test.third", ctypes.addressof(number), ctypes.addressof(info))
        states: list[int | None] = []
        kind = number.value
        first = handler(lambda call, kind=kind: call.set_state(kind, 1 + kind))
        main = handler(lambda call, kind=kind, states=states: states.append(call.state(kind)))
        register_foreign_function(TARGET, {"instantiate": address(first), "execute": address(main)})
        try:
            call([np.zeros(1, np.float32)], "tensor<1xf32>")
        finally:
            CUSTOM_CALLS.pop(TARGET, None)
        assert states == [1 + kind]
        gc.collect()
        assert deleted.pop() == 1 + kind
        assert not deleted
