"""Host functions that GPU programs call, on copies of their arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.backends import native
from trivium.backends.gpu.plan import Call
from trivium.compiler.host import called_op, host_function, python_function
from trivium.compiler.program import HostCall, PythonCall
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.errors import ExecutionError
from trivium.ir.ops import CustomCall

Function = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]

_C = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
"""A C function, as `trivium.backends.cpu.host` describes it: of its own argument, of the addresses of arrays, and of
numbers, of which custom calls have none."""


def function_of(step: Call) -> Function:
    """Returns the function that a step calls."""
    if not step.program:
        return host_function(HostCall(step.target, dict(step.attributes), (), ()))
    call = PythonCall(step.target, step.program, (), ())
    definition = CUSTOM_CALLS.get(step.target)
    if definition is not None and definition.native is not None:
        return _Native(called_op(call), definition.native)
    function, kinds, _ = python_function(call)

    def on_shaped(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return function([array.reshape(kind.static_shape) for array, kind in zip(arrays, kinds, strict=True)])

    return on_shaped


class _Native:
    """The C function of a custom call, such as a foreign function of a PJRT host, on arrays."""

    def __init__(self, op: CustomCall, make: Callable[..., Any]):
        self._target = op.call_target_name
        self._call = make(op)  # owns what its addresses point to
        self._kinds = [result.type for result in op.results]

    def __call__(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        given = [np.ascontiguousarray(array) for array in arrays]
        results = [np.empty(kind.static_shape, kind.dtype) for kind in self._kinds]
        addresses = [array.ctypes.data for array in (*given, *results)]
        function, argument = self._call.addresses
        if _C(function)(argument, (ctypes.c_void_p * len(addresses))(*addresses), None):
            raise ExecutionError(f"host call {self._target} failed: {native.exception()}")
        return results
