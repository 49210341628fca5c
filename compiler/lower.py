"""From an optimized graph to a program: blocks are divided into kernels (`fusion`), which are launched in order,
control flow becomes steps, and the buffer plan (`buffers`) assigns every array its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from trivium.compiler.buffers import assign_buffers
from trivium.compiler.donation import wishes
from trivium.compiler.ends import Ends, needed
from trivium.compiler.fusion import Group, fuse
from trivium.compiler.fusion.forms import Whole
from trivium.compiler.lowering import STEP
from trivium.compiler.lowering.ends import end
from trivium.compiler.lowering.launches import Argument, Temporary
from trivium.compiler.lowering.origins import origin_of
from trivium.compiler.lowering.program_builder import ProgramBuilder, static_size
from trivium.compiler.lowering.sections import section_of
from trivium.compiler.memory import available_memory, require_memory
from trivium.compiler.memory_scheduler import schedule_for_memory
from trivium.compiler.ordering import batched, spans
from trivium.compiler.program import Array, Copy, Input, Launch, Output, Program, Section, Step
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Module


def lower(module: Module, target: Target) -> Program:
    """Returns the program of a module's `main`, in which all calls are inlined and every type is static. It is verified
    (`compiler.verifier`) where it is loaded, because programs can also come from elsewhere."""
    main = module.main
    program = Program(main.sym_name, graph=module)
    lowering = _Lowering(target, needed(main) if target.ends else {})
    for index, argument in enumerate(main.arguments):
        array = lowering.make(argument, Input(index), f"arg{index}")
        lowering.bind(argument, array)
        program.inputs.append(array)
    program.steps = lowering.block(main.body.block)
    for index, value in enumerate(main.returned):
        result = lowering.make(value, Output(index), f"result{index}")
        program.outputs.append(result)
        program.steps.append(Copy(lowering.array(value), result))
    donated = wishes(main) if target.donation else {}
    batches: list[list[Step]] = []
    if target.launch_kind is not None:
        batches = batched(program.steps, partial(target.launch_kind, target=target))
        program.steps = [step for batch in batches for step in batch]
    else:
        schedule_for_memory(program, target, donated)
    assign_buffers(program, target, list(spans(batches)), donated)
    require_memory(program, program.arena_size, target)
    return program


class _Lowering(ProgramBuilder):
    """Turns blocks into steps: fused groups become launches of kernels, other ops have step rules."""

    def __init__(self, target: Target, needed: Mapping[Value, Ends]) -> None:
        super().__init__(available_memory(target))
        self._target, self._needed = target, needed

    def block(self, block: Block) -> list[Step]:
        """Returns the steps of a block; afterwards every value that it returns has an array."""
        outer, self.steps = self.steps, []
        if self.outermost is None:
            self.outermost = self.steps
        fusion = fuse(block, self._target)
        self._views |= fusion.views
        for item in fusion.items:
            if isinstance(item, Group):
                self._launch(item)
            else:
                self._step(item)
        steps, self.steps = self.steps, outer
        return steps

    def _launch(self, group: Group) -> None:
        for value in group.outputs:
            self.bind(value, self.temporary(value))
        if all(static_size(value) == 0 for value in group.outputs):
            return
        for operand, result in group.form.updated():
            # The buffer plan drops the copies that are not needed.
            self.copy(self.array(operand), self.array(result))
        arrays: dict[Temporary, Array] = {}
        kernels = group.kernels(self.name(kernel_name(group)), self._target)
        for number, (kernel, arguments) in enumerate(kernels):
            read = {argument for _, others in kernels[number + 1 :] for argument in others}
            given = end(kernel, arguments, self._needed, read) if self._needed else arguments
            bound = tuple(self._argument(argument, arrays) for argument in given)
            whole = group if group.form.writes_parts else None
            self.steps.append(Launch(kernel, bound, group.computed(), whole))

    def _argument(self, argument: Argument, arrays: dict[Temporary, Array]) -> Array:
        if not isinstance(argument, Temporary):
            return self.array(argument)
        if argument not in arrays:
            arrays[argument] = self.temporary(argument)
        return arrays[argument]

    def _step(self, op: Operation) -> None:
        if section := section_of(op) if self._target.sections else None:
            storage = Section(self.array(section.whole), self.array(section.place), section.stride, section.last)
            self.bind(op.results[0], self.make(op.results[0], storage, self.name("section")))
            return
        rule = STEP.get(type(op))
        if rule is None:
            raise CompileError(f"{op.NAME} cannot be compiled", **origin_of(op))
        rule(self, op)


def kernel_name(group: Group) -> str:
    """Returns a readable name made from the first few kinds of ops that do actual work."""
    principal = group.form.principal
    if isinstance(group.form, Whole):
        return f"{_short(group.form.op)}_"
    kinds = list(dict.fromkeys(map(_short, _significant(group.ordered()))))
    if principal is not None:
        kinds = [_short(principal), *(kind for kind in kinds if kind != _short(principal))]
    if not kinds:
        kinds = [_short(next(iter(group.members)))]
    return "_".join(["fused", *kinds[:4]] if len(kinds) > 1 else kinds) + "_"


def _significant(members: Sequence[Operation]) -> Iterable[Operation]:
    silent = (ops.Constant, ops.Iota, ops.Reshape, ops.BroadcastInDim, ops.Convert, ops.Transpose, ops.Slice)
    return (op for op in members if not isinstance(op, silent))


def _short(op: Operation) -> str:
    return op.NAME.rpartition(".")[2].removesuffix("_general")
