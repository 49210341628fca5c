"""One contraction compiled as a native function of its own, called on NumPy arrays: what the tests and benchmarks of the templates use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import llvmlite.ir as ll
import numpy as np

from trivium.backends.cpu.contraction.emission import I64, POINTER, Emission
from trivium.backends.cpu.contraction.problem import Problem
from trivium.backends.cpu.contraction.template import Element, Operands, Plan, emit, plan, store_sink
from trivium.backends.cpu.target import Target

Epilogue = Callable[[Emission, ll.Value, Element], ll.Value]


class Standalone:
    """`problem` in `dtype`, with an optional epilogue on the sums; constant operands are packed once, here."""

    def __init__(
        self, problem: Problem, dtype: np.dtype, target: Target, constants: dict[str, np.ndarray] | None = None,
        epilogue: Epilogue | None = None,
    ) -> None:  # fmt: skip
        self.dtype = np.dtype(dtype)
        self.constants = dict(constants or {})
        self.plan: Plan = plan(problem, self.dtype.itemsize, target, frozenset(self.constants))
        machine, parsed = target.machine(), llvm.parse_assembly(str(self._emit(target, epilogue)))
        parsed.verify()
        self.assembly = machine.emit_assembly(parsed)
        packed = self.plan.packed_operand
        if packed in self.constants:
            self.constants[packed] = self.plan.pack(self.constants[packed])
        self.engine = llvm.create_mcjit_compiler(parsed, machine)
        self.engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 3)
        self.function = kind(self.engine.get_function_address("contraction"))

    def _emit(self, target: Target, epilogue: Epilogue | None) -> ll.Module:
        module = ll.Module("contraction")
        module.triple = target.triple
        function = ll.Function(module, ll.FunctionType(ll.VoidType(), [I64, I64, POINTER, POINTER, POINTER]), "contraction")
        builder = ll.IRBuilder(function.append_basic_block("entry"))
        e = Emission(builder, ll.FloatType() if self.dtype.itemsize == 4 else ll.DoubleType(), self.plan.tiling.lanes)
        begin, end, lhs, rhs, out = function.args
        operands = Operands(rhs, lhs) if self.plan.oriented.swapped else Operands(lhs, rhs)
        store = store_sink(out)

        def sink(e: Emission, value: ll.Value, element: Element) -> None:
            store(e, value if epilogue is None else epilogue(e, value, element), element)

        emit(e, self.plan, operands, begin, end, sink, inline=epilogue is None)
        e.builder.ret_void()
        return module

    def __call__(self, lhs: np.ndarray | None, rhs: np.ndarray | None, out: np.ndarray) -> None:
        lhs = self.constants.get("lhs", lhs)
        rhs = self.constants.get("rhs", rhs)
        self.function(0, self.plan.units, lhs.ctypes.data, rhs.ctypes.data, out.ctypes.data)
