"""The bridge from kernels: which contractions the template takes, as problems of index arithmetic; the function it
emits for one, with the kernel's own epilogue as the sink; and constant operands packed once, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import llvmlite.ir as ll

from trivium.backends.cpu.code import I32, I64, POINTER, Code
from trivium.backends.cpu.contraction.emission import Emission, Number, index
from trivium.backends.cpu.contraction.place import unflatten
from trivium.backends.cpu.contraction.plan import Plan, plan
from trivium.backends.cpu.contraction.problem import Access, Axis, Group, Problem, dimension
from trivium.backends.cpu.contraction.template import Element, emit
from trivium.backends.cpu.emit import Emitter
from trivium.backends.cpu.narrow import held_type
from trivium.backends.cpu.target import Target
from trivium.backends.cpu.threads import PARALLEL_FOR
from trivium.compiler.kernel import contraction as mark
from trivium.compiler.kernel.affine import Analysis, accesses, holds
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.kernel.structure import Kernel, Scratch, Store, Value
from trivium.compiler.kernel.structure import While as KernelWhile
from trivium.compiler.program import Constant, Launch, Program, Step, Switch, While
from trivium.compiler.program import Value as ProgramValue
from trivium.compiler.schedule import choose_block

GRAIN_FLOPS = 500_000
"""Work below which a piece is not worth another thread: some 5 to 10 us."""


@dataclass(eq=False)
class PackedKernel(Kernel):
    """A kernel one of whose contraction's operands ("lhs" or "rhs") is bound to its packed form."""

    packed: str = ""

    def digest(self) -> str:
        return f"{super().digest()}.{self.packed}"


def supports(kernel: Kernel) -> bool:
    """Whether the template computes this kernel: a contraction in f32 or f64, of operands as they lie in memory, that
    has any work to do."""
    contraction = kernel.contraction
    if contraction is None or contraction.accumulate not in ("f32", "f64"):
        return False
    operands = (contraction.lhs, contraction.rhs)
    alike = all(operand.buffer.dtype == contraction.accumulate for operand in operands)
    plain = contraction.lhs_prologue is None and contraction.rhs_prologue is None
    small = all(operand.buffer.size < 2**31 for operand in operands)
    work = all(loop.extent > 0 for loop in contraction.loops)
    return alike and plain and small and work and not holds(contraction.epilogue, KernelWhile, Scratch)


class Lowering:
    """A kernel's contraction as a problem, and its plan for `target`."""

    def __init__(
        self, kernel: Kernel, target: Target, threads: int = 1, constants: frozenset[str] = frozenset()
    ) -> None:
        assert kernel.contraction is not None
        self.kernel, self.target, self.threads = kernel, target, threads
        self.contraction: mark.Contraction = kernel.contraction
        self.constants = frozenset({kernel.packed}) if isinstance(kernel, PackedKernel) else constants
        self.axes = [Axis(loop.extent) for loop in self.contraction.loops]
        self.analysis = Analysis(self.contraction.epilogue)
        self.plan: Plan = plan(
            self._problem(), storage_bytes(self.contraction.accumulate), target, self.constants, threads
        )

    def _problem(self) -> Problem:
        groups = {
            role: Group(tuple(self.axes[i] for i in self.contraction.positions(role)))
            for role in ("batch", "m", "n", "k")
        }
        return Problem(
            batch=groups["batch"], rows=groups["m"], columns=groups["n"], reduction=groups["k"],
            lhs=self._access(self.contraction.lhs), rhs=self._access(self.contraction.rhs), out=self._result(),
        )  # fmt: skip

    def _access(self, operand: mark.Access) -> Access:
        access = Access({}, operand.buffer.offset)
        dimensions = zip(operand.subscripts, operand.buffer.shape, operand.buffer.layout, strict=True)
        for subscript, size, stride in dimensions:
            terms = tuple((axis, c) for axis, c in zip(self.axes, subscript.coefficients, strict=True) if c)
            access = dimension(access, size, stride, terms, subscript.offset, subscript.dilation)
        return access

    def _result(self) -> Access:
        """How the epilogue stores: of several results, as the first."""
        store = next(access for access in accesses(self.contraction.epilogue) if isinstance(access, Store))
        terms = self.analysis.address(store.buffer, store.indices).terms
        return Access({axis: terms.get(value, 0) for axis, value in self.parameters.items()})

    @cached_property
    def parameters(self) -> dict[Axis, Value]:
        """The epilogue's index parameters."""
        outer = [axis for axis, loop in zip(self.axes, self.contraction.loops, strict=True) if loop.role != "k"]
        return dict(zip(outer, self.contraction.epilogue.parameters[1:], strict=True))

    @cached_property
    def lane_axes(self) -> tuple[Axis, ...]:
        """The axes of the oriented problem's columns that have more than one index."""
        return tuple(axis for axis in self.plan.oriented.columns.axes if axis.extent > 1)

    @cached_property
    def flat_columns(self) -> bool:
        """Whether the epilogue may see all column axes as one: each address moves by an even step, and the indices are
        no numbers in it."""
        inner, run = self.lane_axes[-1], self.lane_axes[-1].extent
        if any(self.parameters[axis] in self.analysis.escaping for axis in self.lane_axes):
            return False
        forms = [self.analysis.address(a.buffer, a.indices).terms for a in accesses(self.contraction.epilogue)]
        for axis in reversed(self.lane_axes[:-1]):
            if any(form.get(self.parameters[axis], 0) != run * form.get(self.parameters[inner], 0) for form in forms):
                return False
            run *= axis.extent
        return True

    @property
    def simple(self) -> bool:
        """Whether the epilogue only stores the sum."""
        return len([i for i in self.contraction.epilogue.instructions if not self.analysis.is_affine(i)]) == 1

    # -- the function

    def emit(self, module: ll.Module, name: str, fast: bool = False) -> ll.Function:
        """Defines `void name(ptr, ...)`, one pointer for each param of the kernel."""
        function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER] * len(self.kernel.params)), name)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        builder = ll.IRBuilder(function.append_basic_block("entry"))
        grain = max(1, GRAIN_FLOPS * self.plan.units // max(1, self.plan.problem.flops))
        if self.threads > 1 and self.plan.units > grain:
            part = self._part(module, f"{name}.part", fast)
            context = _store_all(builder, function.args)
            operands = [part, context, I64(self.plan.units), I64(grain), I32(self.threads)]
            Code(builder, self.target).call(PARALLEL_FOR, ll.VoidType(), *operands)
            builder.ret_void()
        else:
            self._units(builder, list(function.args), 0, self.plan.units, fast)
        return function

    def _part(self, module: ll.Module, name: str, fast: bool) -> ll.Function:
        """void part(ptr params, i64 begin, i64 end)"""
        function = ll.Function(module, ll.FunctionType(ll.VoidType(), [POINTER, I64, I64]), name)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        builder = ll.IRBuilder(function.append_basic_block("entry"))
        context, begin, end = function.args
        places = [builder.gep(context, [I64(n)], source_etype=POINTER) for n in range(len(self.kernel.params))]
        self._units(builder, [builder.load(place, typ=POINTER) for place in places], begin, end, fast)
        return function

    def _units(self, builder: ll.IRBuilder, pointers: list[ll.Value], begin: Number, end: Number, fast: bool) -> None:
        buffers = dict(zip(self.kernel.params, pointers, strict=True))
        epilogue = self.contraction.epilogue
        schedule = choose_block(epilogue, self.target.vector_bytes, 1, self.analysis)
        emitter = Emitter(Code(builder, self.target, fast), self.analysis, schedule, buffers)
        emitter.depth = 1
        e = Emission(builder, held_type(self.contraction.accumulate), self.plan.tiling.lanes)
        lhs, rhs = buffers[self.contraction.lhs.buffer], buffers[self.contraction.rhs.buffer]
        if self.plan.oriented.swapped:
            lhs, rhs = rhs, lhs

        def sink(e: Emission, value: ll.Value, element: Element) -> None:
            with emitter.scope():
                self._epilogue(emitter, e, value, element)

        emit(e, self.plan, lhs, rhs, (begin, end), sink, inline=self.simple)
        e.release()
        emitter.finish()

    def _epilogue(self, emitter: Emitter, e: Emission, value: ll.Value, element: Element) -> None:
        """The epilogue on one vector of sums: along one axis of columns, all of them flat, or, where that cannot be,
        with a vector of indices for each."""
        oriented, epilogue = self.plan.oriented, self.contraction.epilogue
        indices = unflatten(e, oriented.batch, element.batch) | unflatten(e, oriented.rows, element.row)
        vector, lanes, mask = None, e.lanes, element.mask
        if not self.lane_axes:
            value, lanes, mask = e.builder.extract_element(value, I32(0)), 1, None
            indices |= dict.fromkeys(oriented.columns.axes, 0)
        elif len(self.lane_axes) == 1 or self.flat_columns:
            vector = self.parameters[self.lane_axes[-1]]
            indices |= dict.fromkeys(oriented.columns.axes, 0) | {self.lane_axes[-1]: element.column}
        else:
            flat = e.builder.add(e.to_lanes(element.column), e.iota())
            wide = ll.VectorType(I64, lanes)
            found = unflatten(e, oriented.columns, flat)
            indices |= {axis: e.builder.sext(e.to_lanes(number), wide) for axis, number in found.items()}
        emitter.values[epilogue.parameters[0]] = value
        emitter.values.update({self.parameters[axis]: index(number) for axis, number in indices.items()})
        with emitter.in_lanes(vector, lanes, mask):
            emitter.block(epilogue)


def _store_all(builder: ll.IRBuilder, pointers: Sequence[ll.Value]) -> ll.Value:
    """A table of pointers on the stack."""
    table = builder.alloca(POINTER, max(1, len(pointers)))
    for position, pointer in enumerate(pointers):
        builder.store(pointer, builder.gep(table, [I64(position)], source_etype=POINTER))
    return table


def pack_constants(source: Program, target: Target, threads: int) -> Program:
    """The program with every constant operand that the template wants packed replaced by its packed form."""
    return replace(source, steps=_packed_steps(source.steps, target, threads))


def _packed_steps(steps: list[Step], target: Target, threads: int) -> list[Step]:
    result: list[Step] = []
    for step in steps:
        match step:
            case Launch(kernel) if supports(kernel):
                step = _packed_launch(step, target, threads)
            case While(condition, predicate, body):
                step = While(_packed_steps(condition, target, threads), predicate, _packed_steps(body, target, threads))
            case Switch(index, branches):
                step = Switch(index, [_packed_steps(branch, target, threads) for branch in branches])
        result.append(step)
    return result


def _packed_launch(launch: Launch, target: Target, threads: int) -> Launch:
    """Constants are packed only where the kernel reads them through the contraction alone."""
    kernel, contraction = launch.kernel, launch.kernel.contraction
    assert contraction is not None
    bound = dict(zip(kernel.params, launch.arguments, strict=True))
    elsewhere = {access.buffer for access in accesses(contraction.epilogue)}
    operands = {"lhs": contraction.lhs.buffer, "rhs": contraction.rhs.buffer}
    constant = frozenset(
        name
        for name, buffer in operands.items()
        if isinstance(bound[buffer].storage, Constant) and buffer not in elsewhere
    )
    chosen = Lowering(kernel, target, threads, constant).plan
    name = chosen.packed_operand
    if name is None or operands["lhs"] is operands["rhs"]:
        return launch
    original = bound[operands[name]]
    array = chosen.pack(original.storage.array)
    bound[operands[name]] = ProgramValue(f"{original.name}.packed", original.dtype, array.shape, Constant(array))
    fields = {"name": kernel.name, "params": kernel.params, "body": kernel.body, "contraction": contraction}
    return Launch(PackedKernel(**fields, packed=name), tuple(bound[param] for param in kernel.params))
