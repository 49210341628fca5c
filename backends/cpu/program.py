"""Compiles a program to one LLVM module with one entry function. Every distinct kernel becomes one internal function;
the entry computes the address of each value, calls the kernels in order, and has the loops and branches of the
program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import llvmlite.ir as ll

from trivium.backends.cpu import collectives, copies
from trivium.backends.cpu.code import ENTRY
from trivium.backends.cpu.contraction import kernels as contractions
from trivium.backends.cpu.contraction.constants import PackedLaunch, packed_launches
from trivium.backends.cpu.contraction.tiling import Tiling
from trivium.backends.cpu.emit import emit_kernel
from trivium.backends.cpu.forms import prepared
from trivium.backends.cpu.interrupts import Interrupts
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.cpu.timing import Timer, Tracer
from trivium.backends.llvm.code import I8, I32, I64, POINTER, Code, stack_slot
from trivium.backends.llvm.lines import LinedModule, Lines
from trivium.backends.llvm.workspace import WorkspaceSize
from trivium.compiler.kernel import Kernel, storage_bytes
from trivium.compiler.memory import require_memory
from trivium.compiler.program import (
    Arena,
    Array,
    Collective,
    Constant,
    Copy,
    HostCall,
    Input,
    Launch,
    Output,
    Program,
    PythonCall,
    Section,
    Step,
    Switch,
    While,
    operands,
    walk,
    with_memory,
)
from trivium.compiler.schedule import Schedule
from trivium.compiler.stages import DEFAULT, CompileOptions
from trivium.compiler.verifier import overlap, region


@dataclass
class Emitted:
    """The module, and the requirements of a call of `int trivium_entry(void** args, void* arena, void** context)`:
    `args` are the inputs, then the outputs; `context` contains two addresses for each host call, that of its function
    and that of the function's own argument, and then those of the constants' data; the arena has `arena_size` bytes,
    for the program itself and for the workspace of its kernels. It returns 0, or another status if it ended early: a
    signal arrived, or a host call failed. `schedules` are those of the module's functions, by name."""

    module: ll.Module
    arena_size: int = 0
    values: list[Array] = field(default_factory=list)
    """The values that the program reads and writes, with constants to be packed in place of its own."""
    host_calls: list[HostCall | PythonCall] = field(default_factory=list)
    schedules: dict[str, Schedule | Tiling] = field(default_factory=dict)
    timed: list[Step] = field(default_factory=list)
    """The steps whose times are recorded, by their numbers there; `context` then ends with the table's address."""

    @property
    def constants(self) -> list[Array]:
        return [value for value in self.values if isinstance(value.storage, Constant)]

    @property
    def storages(self) -> list[Constant]:
        """The data of the constants; those that are passed packed are `PackedConstant`s."""
        return [value.storage for value in self.values if isinstance(value.storage, Constant)]


@dataclass(frozen=True)
class Call:
    """The call that a launch is compiled to."""

    function: ll.Function
    arguments: tuple[Array, ...]


def emit_program(
    program: Program,
    target: CpuTarget,
    options: CompileOptions = DEFAULT,
    timed: bool = False,
    lines: Lines | None = None,
    after_kernel: Callable[[ll.Module], None] | None = None,
) -> Emitted:
    """Returns the LLVM module of `program` for `target`. Constants that contractions read packed are passed packed. If
    `timed`, the entry records when its steps run (`timing.py`). With `lines`, instructions name the lines of the
    kernels' text that they come from. `after_kernel` is called after each kernel, when what the module defines is
    final."""
    module = LinedModule(program.name, lines) if lines is not None else ll.Module(program.name)
    module.triple = target.triple
    emitted = Emitted(module)
    calls, workspace = _emit_launches(program, target, emitted, options.fast_math, after_kernel)
    emitted.values = _values(program, calls)
    emitted.host_calls = [s for s in walk(program.steps) if isinstance(s, HostCall | PythonCall)]
    begin = -(-program.arena_size // target.alignment) * target.alignment
    emitted.arena_size = begin + workspace if workspace else program.arena_size
    require_memory(program, emitted.arena_size, target)
    _Entry(program, target, emitted, calls, I64(begin), options.traced, timed).emit()
    return emitted


def _emit_launches(
    program: Program,
    target: CpuTarget,
    emitted: Emitted,
    fast_math: bool,
    after_kernel: Callable[[ll.Module], None] | None,
) -> tuple[dict[Launch, Call], int]:
    """Returns a function for every kernel and operand that it reads packed, which kernels of equal structure share, and
    the maximal number of bytes of workspace that one of them needs."""
    functions: dict[tuple[object, ...], ll.Function] = {}
    digests = {kernel: kernel.digest() for kernel in program.kernels()}
    packed = packed_launches(program, target)
    calls, workspace = {}, 0
    for launch in (step for step in walk(program.steps) if isinstance(step, Launch)):
        packing = packed.get(launch)
        key = digests[launch.kernel], *((packing.operand, packing.finite) if packing else ())
        if key not in functions:
            name = emitted.module.get_unique_name(f"kernel.{launch.kernel.name}")
            size = WorkspaceSize()
            before = len(emitted.module.functions)
            function, schedule = _emit_kernel(emitted.module, name, launch.kernel, target, packing, size, fast_math)
            if isinstance(emitted.module, LinedModule):
                emitted.module.complete(launch.kernel, emitted.module.functions[before:])
            workspace = max(workspace, size.nbytes)
            functions[key], emitted.schedules[name] = function, schedule
            if after_kernel:
                after_kernel(emitted.module)
        calls[launch] = Call(functions[key], packing.arguments if packing else launch.arguments)
    return calls, workspace


def _emit_kernel(
    module: ll.Module,
    name: str,
    kernel: Kernel,
    target: CpuTarget,
    packed: PackedLaunch | None,
    size: WorkspaceSize,
    fast_math: bool,
) -> tuple[ll.Function, Schedule | Tiling]:
    """Returns the kernel's function; `packed` is the launch whose contraction reads an operand packed."""
    operand, finite = (packed.operand, packed.finite) if packed else (None, False)
    if contractions.chosen(kernel, operand):
        lowering = contractions.Lowering(kernel, target, frozenset({operand} if operand else ()), finite)
        return lowering.emit(module, name, size, fast_math), lowering.tiling
    kernel, analysis, schedule = prepared(kernel, target)
    function = emit_kernel(module, name, kernel, schedule, target, analysis, size, fast_math)
    return function, schedule


def _values(program: Program, calls: dict[Launch, Call]) -> list[Array]:
    """Returns every value that is passed to a step, inputs and outputs first."""
    found = dict.fromkeys([*program.inputs, *program.outputs])
    for step in walk(program.steps):
        used = with_memory(calls[step].arguments) if isinstance(step, Launch) else operands(step)
        found.update(dict.fromkeys(used))
    return list(found)


class _Entry:
    """Writes the entry function. `workspace` is the offset of the workspace in the arena."""

    def __init__(
        self,
        program: Program,
        target: CpuTarget,
        emitted: Emitted,
        calls: dict[Launch, Call],
        workspace: ll.Value,
        traced: bool,
        timed: bool,
    ):
        self._program = program
        self._emitted = emitted
        self._calls = calls
        function = ll.Function(emitted.module, ll.FunctionType(I32, [POINTER, POINTER, POINTER]), ENTRY)
        function.attributes.add("nounwind")
        self._args, self._arena, self._context = function.args
        self._builder = ll.IRBuilder(function.append_basic_block("entry"))
        self._workspace = self._builder.gep(self._arena, [workspace], source_etype=I8)
        self._code = Code(self._builder, target)
        self._interrupts = Interrupts(self._builder, self._code)
        self._constants = {value: number for number, value in enumerate(emitted.constants)}
        self._pointers: dict[Array, ll.Value] = {}
        self._around: Callable[[Step], AbstractContextManager[None]] = lambda step: nullcontext()
        if timed:
            last = 2 * len(emitted.host_calls) + len(self._constants)
            timer = Timer(emitted.module, self._builder, self._entry_of(self._context, last))
            self._around, emitted.timed = timer.around, timer.steps
        elif traced:
            self._around = Tracer(self._code, self._text).around

    def emit(self) -> None:
        for value in self._emitted.values:
            self._pointers[value] = self._place(value)
        self._steps(self._program.steps)
        self._builder.ret(I32(0))

    def _place(self, value: Array) -> ll.Value:
        match value.storage:
            case Input(index):
                return self._entry_of(self._args, index)
            case Output(index, offset):
                result = self._entry_of(self._args, len(self._program.inputs) + index)
                return self._builder.gep(result, [I64(offset)], source_etype=I8) if offset else result
            case Constant():
                calls = len(self._emitted.host_calls)
                return self._entry_of(self._context, 2 * calls + self._constants[value])
            case Arena(offset):
                return self._builder.gep(self._arena, [I64(offset)], source_etype=I8)

    def _pointer(self, value: Array) -> ll.Value:
        """Returns where an argument is, which may be a section."""
        match value.storage:
            case Section(whole, place, stride, last):
                kind = ll.IntType(8 * storage_bytes(place.dtype))
                number = self._builder.sext(self._builder.load(self._pointers[place], typ=kind), I64)
                number = self._code.intrinsic("llvm.smax", number, I64(0))
                number = self._code.intrinsic("llvm.smin", number, I64(last))
                size = stride * storage_bytes(value.dtype) * (1 + value.is_complex)
                return self._builder.gep(self._pointer(whole), [self._builder.mul(number, I64(size))], source_etype=I8)
        return self._pointers[value]

    def _entry_of(self, table: ll.Value, index: int) -> ll.Value:
        """Returns the pointer at `index` of a table of pointers."""
        place = self._builder.gep(table, [I64(index)], source_etype=POINTER)
        return self._builder.load(place, typ=POINTER)

    def _steps(self, steps: list[Step]) -> None:
        for step in steps:
            self._interrupts.before(step)
            with self._around(step):
                self._step(step)

    def _step(self, step: Step) -> None:
        match step:
            case Launch():
                call = self._calls[step]
                pointers = list(map(self._pointer, call.arguments))
                self._builder.call(call.function, [*pointers, self._workspace])
            case Copy(source, destination):
                ends = self._pointers[destination], self._pointers[source]
                shares = overlap(region(source), region(destination))
                if shares and isinstance(source.storage, Input):
                    with self._builder.if_then(self._builder.icmp_unsigned("!=", *ends)):
                        copies.emit(self._code, *ends, source.nbytes, apart=True)
                else:
                    copies.emit(self._code, *ends, source.nbytes, apart=not shares)
            case While():
                self._while(step)
            case Switch():
                self._switch(step)
            case HostCall() | PythonCall():
                self._host_call(step)
            case Collective():
                self._collective(step)

    def _while(self, step: While) -> None:
        builder = self._builder
        test, body, after = (builder.append_basic_block(name) for name in ("while.test", "while.body", "while.end"))
        builder.branch(test)
        builder.position_at_end(test)
        self._steps(step.condition)
        going = builder.load(self._pointers[step.predicate], typ=I8)
        builder.cbranch(builder.icmp_unsigned("!=", going, I8(0)), body, after)
        builder.position_at_end(body)
        self._interrupts.turn(step)
        self._steps(step.body)
        builder.branch(test)
        builder.position_at_end(after)

    def _switch(self, step: Switch) -> None:
        builder = self._builder
        index = builder.load(self._pointers[step.index], typ=ll.IntType(8 * storage_bytes(step.index.dtype)))
        blocks = [builder.append_basic_block(f"case.{n}") for n in range(len(step.branches))]
        after = builder.append_basic_block("switch.end")
        switch = builder.switch(index, blocks[-1])
        for number, block in enumerate(blocks[:-1]):
            switch.add_case(index.type(number), block)

        def emit(block: ll.Block, branch: list[Step]) -> None:
            builder.position_at_end(block)
            self._steps(branch)
            builder.branch(after)

        branches = zip(blocks, step.branches, strict=True)
        self._interrupts.branches([functools.partial(emit, block, branch) for block, branch in branches])
        builder.position_at_end(after)

    def _host_call(self, step: HostCall | PythonCall) -> None:
        """Ends the program with the host's status if that is not 0."""
        builder = self._builder
        number = self._emitted.host_calls.index(step)
        values = [*step.arguments, *step.results]
        table = stack_slot(builder, ll.ArrayType(POINTER, len(values)))
        for position, value in enumerate(values):
            builder.store(self._pointers[value], builder.gep(table, [I64(position)], source_etype=POINTER))
        attributes = self._numbers([number] if isinstance(step, PythonCall) else list(step.attributes.values()))
        function, routine = (self._entry_of(self._context, 2 * number + which) for which in range(2))
        status = self._code.call("trivium_host_call", I32, function, routine, table, attributes)
        with builder.if_then(builder.icmp_unsigned("!=", status, I32(0)), likely=False):
            builder.ret(status)

    def _collective(self, step: Collective) -> None:
        """Ends the program with the runtime's status if that is not 0: if one device fails, all fail."""
        numbers = self._numbers(collectives.description(step))
        ends = self._pointers[step.source], self._pointers[step.destination]
        status = self._code.call("trivium_collective", I32, numbers, *ends)
        with self._builder.if_then(self._builder.icmp_unsigned("!=", status, I32(0)), likely=False):
            self._builder.ret(status)

    def _text(self, text: str) -> ll.Value:
        """Returns a pointer to a text that ends with a zero."""
        data = bytearray(text.encode(errors="replace") + b"\0")
        return self._constant("text", ll.Constant(ll.ArrayType(I8, len(data)), data))

    def _numbers(self, numbers: list[int]) -> ll.Value:
        """Returns a pointer to integers of 64 bits."""
        return self._constant("attributes", ll.Constant(ll.ArrayType(I64, len(numbers)), numbers))

    def _constant(self, name: str, value: ll.Constant) -> ll.Value:
        constant = ll.GlobalVariable(self._emitted.module, value.type, self._emitted.module.get_unique_name(name))
        constant.initializer = value
        constant.global_constant = True
        constant.linkage = "internal"
        # llvmlite's globals have a typed pointer, which fits only calls with equally many numbers.
        constant.type = POINTER
        return constant
