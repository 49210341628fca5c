"""The bridge from kernels: the contractions that the template supports, as problems of index arithmetic, and the
function that it emits for one, with the kernel's own epilogue as the sink."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.cpu.contraction import matrix_tiling
from trivium.backends.cpu.contraction.along_memory import has_tiny_matrices, slides_along_memory, sums_along_memory
from trivium.backends.cpu.contraction.dot_template import DotTemplate
from trivium.backends.cpu.contraction.image_template import ImageTemplate
from trivium.backends.cpu.contraction.matrix_packing import LANES
from trivium.backends.cpu.contraction.matrix_template import ROW_BYTES, MatrixTemplate
from trivium.backends.cpu.contraction.needed import EVERYTHING, Needed
from trivium.backends.cpu.contraction.plan import Plan, plan
from trivium.backends.cpu.contraction.requests import Piece, Pieces, Rows, rows_of_epilogue
from trivium.backends.cpu.contraction.template import Element, Operand, Sink, Template
from trivium.backends.cpu.contraction.tiling import ESTIMATED, Reading, Rhs, Tiling
from trivium.backends.cpu.target import CpuTarget
from trivium.backends.cpu.threads import call_parallel, range_function
from trivium.backends.llvm.code import F32, I32, I64, POINTER, Code
from trivium.backends.llvm.displacement import Indices, terms_of, unflatten
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.narrow import held_type, memory_type
from trivium.backends.llvm.numbers import Int, Number, i64, maximum, minimum
from trivium.backends.llvm.vectors import Converted, Vectors
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.contraction.marked import Marked
from trivium.compiler.contraction.phases import Phase, phases
from trivium.compiler.kernel.affine import Analysis
from trivium.compiler.kernel.contraction import Access, Contraction
from trivium.compiler.kernel.dtypes import FLOATS, INTEGERS, SIGNED, bit_width, storage_bytes
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Buffer, Loop, Register
from trivium.compiler.schedule import fits_lanes, serial
from trivium.compiler.target import MatrixInstruction

EXACT_INTEGERS = 1 << 24
"""Up to this magnitude, f32 represents every integer: products of small integers are added exactly in f32."""

_WIDENED = {"f32": FLOATS - {"f64", "f8E8M0FNU"}, "f64": FLOATS - {"f8E8M0FNU"}}
"""The types that are converted to f32 or f64 when they are read. Padding is read as zero bits, which f8E8M0FNU does not
take for zero."""


def supports(kernel: Kernel) -> bool:
    """Whether the template computes this kernel: a contraction that is not empty, without prologues, whose operands it
    can read, with an epilogue that can run on a vector of sums."""
    contraction = kernel.contraction
    if contraction is None or not _is_readable(contraction):
        return False
    operands = (contraction.lhs, contraction.rhs)
    plain = contraction.lhs_prologue is None and contraction.rhs_prologue is None
    small = all(operand.buffer.size < 2**31 for operand in operands)
    work = all(loop.extent > 0 for loop in contraction.loops)
    epilogue = contraction.epilogue
    fits = plain and small and work and fits_lanes(epilogue, epilogue.parameters, Analysis(epilogue))
    return fits and not slides_along_memory(contraction)


def chosen(kernel: Kernel, packed: str | None) -> bool:
    """Whether the template is what computes this kernel, whose operand `packed`, if any, is stored in its tiles."""
    contraction = kernel.contraction
    if contraction is None or not supports(kernel):
        return False
    return packed is not None or not (sums_along_memory(contraction) or has_tiny_matrices(contraction))


def _is_readable(contraction: Contraction) -> bool:
    """Whether the template multiplies these types: floats in f32 or f64, and integers of at most 8 bits in i32."""
    dtypes = [operand.buffer.dtype for operand in (contraction.lhs, contraction.rhs)]
    if contraction.accumulate == "i32":
        return all(dtype in INTEGERS and bit_width(dtype) <= 8 for dtype in dtypes)
    return all(dtype in _WIDENED.get(contraction.accumulate, ()) for dtype in dtypes)


def _reading(contraction: Contraction, target: CpuTarget) -> Reading:
    """Returns how the template reads the operands. Without instructions for them, integers are read as f32."""
    lhs, rhs = contraction.lhs.buffer.dtype, contraction.rhs.buffer.dtype
    matrices = target.instructions_for(lhs, rhs, contraction.accumulate)
    if contraction.accumulate == "i32":
        terms, alike = EXACT_INTEGERS // (_magnitude(lhs) * _magnitude(rhs)), (lhs in SIGNED) == (rhs in SIGNED)
        return Reading(True, True, terms, matrices, alike)
    return Reading(lhs != contraction.accumulate, rhs != contraction.accumulate, matrices=matrices)


def _magnitude(dtype: str) -> int:
    """Returns the largest magnitude of an integer."""
    return 1 << (bit_width(dtype) - 1) if dtype in SIGNED else (1 << bit_width(dtype)) - 1


def _is_quick(dtype: str, target: CpuTarget) -> bool:
    """Whether one or two instructions convert a vector, so that the innermost loop may convert a packed constant."""
    return dtype in INTEGERS or dtype in ("bf16", "f32", "f64") or (dtype == "f16" and target.half)


class Share:
    """One phase of a contraction with its plan, and the mapping from its indices to the epilogue's."""

    def __init__(self, marked: Marked, phase: Phase, chosen: Plan) -> None:
        self.marked, self.phase, self.plan = marked, phase, chosen
        self.columns = [axis for axis in chosen.oriented.columns.axes if axis.extent > 1]
        """The axes that run over the lanes."""

    def sink(self, emitter: Emitter, e: Vectors, value: ll.Value, element: Element) -> None:
        """Runs the epilogue on one vector of sums: along one axis of columns, or several that are merged into one, or,
        if that is not possible, with a vector of indices for each."""
        epilogue, indices = self.marked.epilogue, self._indices(element)
        vector, lanes, mask = None, e.lanes, element.mask
        if not self.columns:
            value, lanes, mask = e.builder.extract_element(value, I32(0)), 1, None
        elif self._in_step():
            vector = self.marked.parameters[self.columns[-1]]
            indices[self.columns[-1]] = element.column
        else:
            indices |= unflatten(self.plan.oriented.columns, e.spread(element.column))
        with emitter.scope(), emitter.in_lanes(vector, lanes, mask):
            emitter.values[epilogue.parameters[0]] = value
            emitter.values |= self._arguments(e, indices)
            emitter.block(epilogue)

    def pieces(self, emitter: Emitter) -> Pieces | None:
        """Returns what finds the pieces of large arrays that the epilogue uses for a tile; None if there are none."""
        marked, oriented, target = self.marked, self.plan.oriented, emitter.code.target
        assert isinstance(target, CpuTarget), "a processor"
        if self.phase.origins or not self.columns or not self._in_step():
            return None
        lane = marked.parameters[self.columns[-1]]
        found = rows_of_epilogue(marked, oriented.rows, lane, target.prefetch_bytes)

        def pieces(e: Vectors, element: Element) -> list[Piece]:
            indices = self._indices(element) | {self.columns[-1]: element.column}
            with emitter.scope():
                emitter.values |= self._arguments(e, indices)
                return [_piece(emitter, rows) for rows in found]

        return pieces if found else None

    def _indices(self, element: Element) -> Indices:
        """Returns the index of an element on each axis, without those of its column."""
        oriented = self.plan.oriented
        indices = unflatten(oriented.batch, element.batch) | unflatten(oriented.rows, element.row)
        return indices | dict.fromkeys(oriented.columns.axes, 0)

    def _in_step(self) -> bool:
        """Whether neighbouring lanes are neighbouring indices of one of the epilogue's parameters, or can be treated
        so."""
        if any(axis not in self.marked.parameters for axis in self.columns):
            return False
        return len(self.columns) == 1 or self.marked.is_flat(self.columns)

    def _arguments(self, e: Vectors, indices: Indices) -> dict[Register, ll.Value]:
        """Returns the epilogue's indices: 64 bits each, scalars or a vector with one index per lane."""
        arguments = {}
        for axis, parameter in self.marked.parameters.items():
            origin = self.phase.origin(axis)
            number = i64(terms_of(origin, indices) + origin.offset)
            lanes = isinstance(number.type, ll.VectorType)
            arguments[parameter] = e.builder.sext(number, ll.VectorType(I64, e.lanes)) if lanes else number
        return arguments


class Lowering:
    """A kernel's contraction, planned for `target`. `constants` names the operands that are known in advance; `finite`
    says that the elements of the one that is packed are finite."""

    def __init__(
        self, kernel: Kernel, target: CpuTarget, constants: frozenset[str] = frozenset(), finite: bool = False
    ) -> None:
        assert kernel.contraction is not None
        self.kernel, self.target = kernel, target
        self.marked = Marked(kernel.contraction)
        stored = {"lhs": kernel.contraction.lhs.buffer.dtype, "rhs": kernel.contraction.rhs.buffer.dtype}
        constants = frozenset(name for name in constants if _is_quick(stored[name], target))
        found = phases(self.marked.problem)
        if len(found) > 1:
            constants = frozenset()
        self.element_bytes = storage_bytes(kernel.contraction.accumulate)
        knobs = target.tuned_knobs(kernel.digest()) if target.tuned else ESTIMATED
        how = (self.element_bytes, target, constants, knobs, finite, _reading(kernel.contraction, target))
        plans = (plan(phase.problem, *how) for phase in found)
        self.shares = [Share(self.marked, phase, chosen) for phase, chosen in zip(found, plans, strict=True)]

    @property
    def plan(self) -> Plan:
        """The plan; if there are several shares, which are much alike, that of the first."""
        return self.shares[0].plan

    @property
    def tiling(self) -> Tiling:
        return self.plan.tiling

    @property
    def units(self) -> int:
        return sum(share.plan.units for share in self.shares)

    def emit(self, module: ll.Module, name: str, size: WorkspaceSize, fast: bool = False) -> ll.Function:
        """Defines `void name(ptr, ..., ptr)`: one pointer for each parameter of the kernel, and the workspace, of which
        it needs `size`."""
        parameters = [POINTER] * (len(self.kernel.params) + 1)
        function = ll.Function(module, ll.FunctionType(ll.VoidType(), parameters), name)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        builder = ll.IRBuilder(function.append_basic_block("entry"))
        code = Code(builder, self.target, fast)
        workspace = Workspace(function.args[-1], size)
        cost = sum(matrix_tiling.cost(share.plan, self.target, self.element_bytes) for share in self.shares)
        grain = max(1, math.ceil(self.target.piece_cost * self.units / cost))
        if self.target.threads > 1 and self.units > grain:
            unique = module.get_unique_name(f"{name}.part")
            part = range_function(code, unique, functools.partial(self._part, workspace))
            brief = cost < self.target.wake_cost
            call_parallel(code, part, _table(builder, function.args), (self.units, grain), brief)
        else:
            self._units(code, function.args, workspace, (0, self.units))
        builder.ret_void()
        return function

    def _part(
        self, whole: Workspace, code: Code, context: ll.Value, begin: Int, end: Int, participant: ll.Value
    ) -> None:
        """Runs a range of the units in one of several threads; `context` has the pointers."""
        builder = code.builder
        places = [builder.gep(context, [I64(n)], source_etype=POINTER) for n in range(len(self.kernel.params) + 1)]
        pointers = [builder.load(place, typ=POINTER) for place in places]
        workspace = whole.shared(pointers[-1], self.target.threads, participant)
        self._units(code, pointers, workspace, (begin, end))

    def _units(
        self, code: Code, pointers: Sequence[ll.Value], workspace: Workspace, units: tuple[Number, Number]
    ) -> None:
        """Runs the units from the first of `units` up to, but not including, the second, counted over all shares."""
        contraction, analysis = self.marked.contraction, self.marked.analysis
        buffers = dict(zip(self.kernel.params, pointers, strict=False))
        schedule = serial(contraction.epilogue, analysis)
        emitter = Emitter(code, analysis, schedule, buffers, workspace)
        sums = Vectors(code.builder, self.target, held_type(contraction.accumulate), self.tiling.lanes)
        e = Vectors(code.builder, self.target, F32, sums.lanes) if contraction.accumulate == "i32" else sums

        def operand(access: Access, matrix: MatrixInstruction | None) -> Operand:
            base, dtype = buffers[access.buffer], access.buffer.dtype
            if matrix is not None:
                # Bytes that are extended fill a register, but rows are also packed in squares of LANES.
                row_bytes = max(LANES, matrix.columns * matrix.depth) if matrix.widens else ROW_BYTES
                whole = Vectors(code.builder, self.target, memory_type(dtype), row_bytes // storage_bytes(dtype))
                return Operand(base, whole, dtype in SIGNED)
            return Operand(base, e if dtype == contraction.accumulate else Converted(e, dtype))

        first = 0
        for share in self.shares:
            matrix = share.plan.tiling.matrix
            lhs, rhs = operand(contraction.lhs, matrix), operand(contraction.rhs, matrix)
            if share.plan.oriented.swapped:
                lhs, rhs = rhs, lhs
            begin, end = (maximum(minimum(bound - first, share.plan.units), 0) for bound in units)
            kind = _kind(share.plan.tiling)
            template = kind(e, sums, share.plan, (lhs, rhs), _sink(share, emitter), self.marked.only_stores)
            if kind is not MatrixTemplate:  # in which a tile passes the sums of the one before to the sink
                template.needed = self._needed(code, buffers, share)
            if kind is Template:
                template.pieces = share.pieces(emitter)
            template.emit(workspace, (begin, end))
            first += share.plan.units

    def _needed(self, code: Code, buffers: dict[Buffer, ll.Value], share: Share) -> Needed:
        """Reads where what has any use ends. Of several shares, each has indices of its own."""
        (loop,) = (i for i in self.kernel.body.instructions if isinstance(i, Loop))
        if len(self.shares) > 1 or not loop.ends:
            return EVERYTHING
        extents = {end.extent: code.builder.load(buffers[end.extent], typ=I64) for end in loop.ends}
        outer = [axis for axis in self.marked.axes if axis in self.marked.parameters]
        return Needed.of([(outer[end.dimension], end, extents[end.extent]) for end in loop.ends], share.plan.oriented)


def _kind(tiling: Tiling) -> type[Template]:
    """Returns the template that emits a schedule."""
    if tiling.matrix is None:
        return ImageTemplate if tiling.rhs is Rhs.IMAGE else Template
    return DotTemplate if tiling.matrix.in_vectors else MatrixTemplate


def _piece(emitter: Emitter, rows: Rows) -> Piece:
    """Returns the piece of rows for the indices that the emitter knows."""
    pointer, dtype = emitter.buffers[rows.buffer], rows.buffer.dtype
    first = emitter.builder.gep(pointer, [emitter.number(rows.place)], source_etype=memory_type(dtype))
    return Piece(first, rows.step * storage_bytes(dtype), rows.buffer.mode != "in")


def _sink(share: Share, emitter: Emitter) -> Sink:
    return lambda e, value, element: share.sink(emitter, e, value, element)


def _table(builder: ll.IRBuilder, pointers: Sequence[ll.Value]) -> ll.Value:
    """Returns an array of pointers on the stack."""
    table = builder.alloca(POINTER, max(1, len(pointers)))
    for position, pointer in enumerate(pointers):
        builder.store(pointer, builder.gep(table, [I64(position)], source_etype=POINTER))
    return table
