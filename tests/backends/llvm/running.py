"""Functions that a test emits, compiled for this processor and called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import llvmlite.ir as ll

from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import I64, POINTER, Code
from trivium.backends.llvm.numbers import Int, Number, i64


def of_numbers(count: int, emit: Callable[..., Number]) -> Callable[..., int]:
    """Returns `emit(code, *numbers)` as a function of `count` integers."""
    module = ll.Module("test")
    function = ll.Function(module, ll.FunctionType(I64, [I64] * count), "test")
    code = Code(ll.IRBuilder(function.append_basic_block("entry")), host())
    code.builder.ret(i64(emit(code, *(Int(code, argument) for argument in function.args))))
    return _compiled(module, ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count))


def of_memory(emit: Callable[[Code, ll.Value], None]) -> Callable[[int], None]:
    """Returns `emit(code, pointer)` as a function of an address."""
    module = ll.Module("test")
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER]), "test")
    code = Code(ll.IRBuilder(function.append_basic_block("entry")), host())
    emit(code, function.args[0])
    code.builder.ret_void()
    return _compiled(module, ctypes.CFUNCTYPE(None, ctypes.c_void_p))


def _compiled(module: ll.Module, kind: Callable[[int], Callable]) -> Callable:
    module.triple = host().triple
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), host().machine())
    engine.finalize_object()
    call = kind(engine.get_function_address("test"))

    def run(*arguments: int) -> int:
        assert engine is not None, "the code lives as long as its engine"
        return call(*arguments)

    return run
