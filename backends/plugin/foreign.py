"""Custom calls whose target is a foreign function: a handler with the C ABI that XLA's clients share, such as JAX's
LAPACK and the functions of `jax.ffi`. A call is described here once, in the structures of
`backends/native/pjrt/foreign_call.h`; native code makes it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trivium.backends import native
from trivium.ir.attributes import DenseArray, DenseElements, Dictionary, Float, Integer
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.func import Module
from trivium.ir.lapack import is_call, is_target
from trivium.ir.ops import CustomCall
from trivium.ir.types import TensorType, Type

STAGES = ("instantiate", "prepare", "initialize", "execute")
"""The handlers that a foreign function may have; the last one is required."""

Find = Callable[[str], Mapping[str, Any] | None]
"""Finds the capsules of a foreign function's handlers, by stage."""

Handlers = Mapping[str, int]
"""The addresses of handlers, by stage."""

TYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "bfloat16": 16, "complex128": 18, "float8_e5m2": 19,
    "float8_e4m3fn": 20, "int4": 21, "uint4": 22, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "int2": 26, "uint2": 27, "float8_e4m3": 28, "float8_e3m4": 29, "float4_e2m1fn": 32,
    "float8_e8m0fnu": 33,
}  # fmt: skip
"""The ABI's numbers of element types, by NumPy's names."""

ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4

FRONTEND = "mhlo.backend_config"
"""The attribute that holds a foreign function's attributes in JAX's programs for older versions of StableHLO, which had
another place for them."""


class _Value(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("element_bytes", ctypes.c_int32),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("alias", ctypes.c_int64),
    )


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
    )


class _Span(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int32), ("value", ctypes.c_void_p))


class _Array(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int32), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class _Handlers(ctypes.Structure):
    _fields_ = tuple((stage, ctypes.c_void_p) for stage in STAGES)


class _Call(ctypes.Structure):
    _fields_ = (
        *_Handlers._fields_,
        ("num_arguments", ctypes.c_int64),
        ("num_results", ctypes.c_int64),
        ("values", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("states", ctypes.c_void_p * 8),  # of each stage, the object and its deleter
    )


def register_foreign_function(target: str, handlers: Handlers) -> None:
    """Lets custom calls of this target call the handlers, on every backend whose memory is the host's."""
    known = CUSTOM_CALLS.get(target)
    evaluate = known.evaluate if known is not None and is_target(target) else None
    register_custom_call(target, evaluate=evaluate, native=lambda op: ForeignCall(op, handlers), replace=True)


def register(target: str, handlers: Handlers) -> None:
    """Registers a foreign function with the native runtime, as hosts do by PJRT's C table. Raises an `Error` if other
    handlers have the name."""
    if not native.load().trivium_register_foreign_function(target.encode(), ctypes.byref(_Handlers(**handlers))):
        raise ExecutionError(native.exception())


def registered(target: str) -> Handlers | None:
    """Returns the handlers that a host has registered with the native runtime."""
    found = _Handlers()
    if not native.load().trivium_find_foreign_function(target.encode(), ctypes.byref(found)):
        return None
    return {stage: address for stage in STAGES if (address := getattr(found, stage))}


def register_type(name: str, type_id: int, type_info: int | None) -> None:
    """Registers a type of the objects that handlers keep: the addresses of its number, which is 0 if it has none yet,
    and of what is known of it, such as how its objects are deleted. Raises an `Error` if the name is taken."""
    place, info = ctypes.c_void_p(type_id), ctypes.c_void_p(type_info)
    if not native.load().trivium_register_foreign_type(name.encode(), place, info):
        raise ExecutionError(native.exception())


def register_foreign_functions(module: Module, finders: Sequence[Find]) -> None:
    """Registers the custom call targets that a module names and that are not known yet, if one of `finders` knows
    them. Calls of LAPACK that are not as JAX writes them, such as with other layouts, are left to JAX's handlers."""
    calls = [op for op in module.walk() if isinstance(op, CustomCall)]
    register_targets(
        {op.call_target_name for op in calls if not (is_target(op.call_target_name) and is_call(op))}, finders
    )


def register_targets(targets: set[str], finders: Sequence[Find]) -> None:
    """Does the same for the given names."""
    for target in targets:
        known = CUSTOM_CALLS.get(target)
        if known is not None and (known.native is not None or not is_target(target)):
            continue
        handlers = registered(target)
        for find in finders if handlers is None else ():
            if capsules := find(target):
                handlers = handlers_of(capsules)
                break
        if handlers is not None:
            register_foreign_function(target, handlers)


class ForeignCall:
    """One custom call of a program: `addresses` are the native function that makes it, and that function's own
    argument. It is in use as long as the program is."""

    def __init__(self, op: CustomCall, handlers: Handlers):
        self._memory: list[Any] = []
        values = (_Value * (len(op.inputs) + len(op.results)))(*self._values(op))
        addresses = {stage: handlers.get(stage) for stage in STAGES}
        call = _Call(
            **addresses,
            num_arguments=len(op.inputs),
            num_results=len(op.results),
            values=self._kept(values),
            attributes=self._dictionary(_attributes(op)),
        )
        self.addresses = native.address("trivium_foreign_call"), self._kept(call)
        library = native.load()
        if library.trivium_foreign_instantiate(ctypes.byref(call)) != 0:
            raise CompileError(f"custom_call @{op.call_target_name}: {native.exception()}")
        weakref.finalize(self, _released, self._memory, call).atexit = False

    def _values(self, op: CustomCall) -> list[_Value]:
        aliases = {_result_of(alias): alias.operand_index for alias in op.output_operand_aliases}
        layouts = [*(op.operand_layouts or [None] * len(op.inputs)), *(op.result_layouts or [None] * len(op.results))]
        types = [value.type for value in (*op.inputs, *op.results)]
        first = len(op.inputs)
        return [
            self._value(kind, layout, aliases.get(position - first, -1) if position >= first else -1)
            for position, (kind, layout) in enumerate(zip(types, layouts, strict=True))
        ]

    def _value(self, kind: TensorType, layout: DenseElements | None, alias: int) -> _Value:
        shape, dtype = kind.static_shape, kind.dtype
        strides = None if layout is None else _strides(shape, dtype.itemsize, layout.array.tolist())
        if strides == _strides(shape, dtype.itemsize, range(len(shape))[::-1]):
            strides = None
        return _Value(
            _type(dtype),
            dtype.itemsize,
            len(shape),
            self._integers(shape),
            None if strides is None else self._integers(strides),
            alias,
        )

    def _integers(self, numbers: Any) -> int:
        return self._kept((ctypes.c_int64 * len(numbers))(*numbers))

    def _dictionary(self, attributes: Mapping[str, Any]) -> int:
        """Returns the ABI's form of a dictionary; its names are in ascending order, in which handlers look them up."""
        items = sorted(attributes.items())
        forms = [self._attribute(name, value) for name, value in items]
        names = [name.encode() for name, _ in items]
        count = len(items)
        spans = [self._kept(_Span(name, len(name))) for name in names]
        return self._kept(
            _Attributes(
                struct_size=ctypes.sizeof(_Attributes),
                size=count,
                types=self._kept((ctypes.c_int32 * count)(*(kind for kind, _ in forms))),
                names=self._kept((ctypes.c_void_p * count)(*spans)),
                values=self._kept((ctypes.c_void_p * count)(*(value for _, value in forms))),
            )
        )

    def _attribute(self, name: str, value: Any) -> tuple[int, int]:
        match value:
            case bool():
                return SCALAR, self._scalar(np.asarray(value))
            case Integer(number, kind) | Float(number, kind):
                return SCALAR, self._scalar(np.asarray(number, _dtype(kind)))
            case str():
                text = value.encode()
                return STRING, self._kept(_Span(text, len(text)))
            case Mapping():
                return DICTIONARY, self._dictionary(value)
            case DenseArray():
                return ARRAY, self._array(np.asarray(value.values, _dtype(value.element_type)))
            case DenseElements():
                return ARRAY, self._array(np.ascontiguousarray(value.array).reshape(-1))
        raise CompileError(f"attribute {name} has {value!r}, for which foreign functions have no form")

    def _scalar(self, array: np.ndarray) -> int:
        self._memory.append(array)
        return self._kept(_Scalar(_type(array.dtype), array.ctypes.data))

    def _array(self, array: np.ndarray) -> int:
        self._memory.append(array)
        return self._kept(_Array(_type(array.dtype), array.size, array.ctypes.data))

    def _kept(self, structure: Any) -> int:
        """Returns the address of a structure that lives as long as this object."""
        self._memory.append(structure)
        return ctypes.addressof(structure)


def _released(memory: list[Any], call: _Call) -> None:
    """Deletes the state of a call, whose memory lives until then."""
    native.load().trivium_foreign_release(ctypes.byref(call))


def handlers_of(capsules: Mapping[str, Any]) -> Handlers:
    """Returns the addresses in Python's capsules, whatever their names are."""
    found = {stage: address_in(capsule) for stage, capsule in capsules.items()}
    if "execute" not in found or not found.keys() <= set(STAGES):
        raise ExecutionError(f"a foreign function has the stages {', '.join(found)}, expected execute among {STAGES}")
    return found


def address_in(capsule: Any) -> int:
    """Returns the address that a capsule of Python holds."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def _attributes(op: CustomCall) -> Mapping[str, Any]:
    for found in (op.backend_config, op.extra.get(FRONTEND)):
        if isinstance(found, Dictionary):
            return found
    return {}


def _result_of(alias: Any) -> int:
    return alias.output_tuple_indices[0] if alias.output_tuple_indices else 0


def _strides(shape: Any, itemsize: int, minor_to_major: Any) -> list[int]:
    strides, stride = [0] * len(shape), itemsize
    for dimension in minor_to_major:
        strides[dimension] = stride
        stride *= max(shape[dimension], 1)
    return strides


def _type(dtype: np.dtype) -> int:
    if dtype.name not in TYPES:
        raise CompileError(f"foreign functions have no element type for {dtype.name}")
    return TYPES[dtype.name]


def _dtype(kind: Type) -> np.dtype:
    return TensorType((), kind).dtype
