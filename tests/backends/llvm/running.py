"""Functions that a test emits, compiled for this processor and called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.code import Code as Loaded
from trivium.backends.cpu.jit import parsed
from trivium.backends.cpu.target import CpuTarget, host
from trivium.backends.llvm.code import I64, POINTER, Code
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.backends.llvm.shared_object import link


def of_numbers(count: int, emit: Callable[..., Number]) -> Callable[..., int]:
    """Returns `emit(code, *numbers)` as a function of `count` integers."""
    module = ll.Module("test")
    function = ll.Function(module, ll.FunctionType(I64, [I64] * count), "test")
    code = Code(ll.IRBuilder(function.append_basic_block("entry")), host())
    code.builder.ret(i64(emit(code, *(Int(code, argument) for argument in function.args))))
    return compiled(module, ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count), host())


def of_memory(emit: Callable[..., None], count: int = 0, target: CpuTarget | None = None) -> Callable[..., None]:
    """Returns `emit(code, pointer, *numbers)` as a function of an address and `count` integers."""
    target = target or host()
    module = ll.Module("test")
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, *[I64] * count]), "test")
    code = Code(ll.IRBuilder(function.append_basic_block("entry")), target)
    emit(code, function.args[0], *(Int(code, number) for number in function.args[1:]))
    code.builder.ret_void()
    return compiled(module, ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * count), target)


def compiled(module: ll.Module, kind: Callable[[int], Callable], target: CpuTarget) -> Callable:
    """Returns the function `test` of a module."""
    module.triple = target.triple
    code = Loaded(link([target.machine().emit_object(parsed(str(module)))]))
    call = kind(code.address("test"))

    def run(*arguments: int) -> int:
        assert code is not None, "the code lives as long as it is loaded"
        return call(*arguments)

    return run
