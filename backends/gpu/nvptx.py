"""PTX, which NVIDIA's driver compiles for the GPU that it finds."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.batches import launch_kind
from trivium.backends.gpu.dialect import SHARED_ALIGNMENT, STATIC_MEMORY, Body, Dialect, Entry
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import BF16, F32, I8, I16, I32, I64, Code
from trivium.compiler.target import MatrixInstruction
from trivium.ir.errors import Error

TRIPLE = "nvptx64-nvidia-cuda"
VOID = ll.VoidType()
CONSTANT = 4
"""The address space of constants."""

KINDS = {"bf16": "bf16", "f16": "f32.f32", "tf32": "tf32", "i8": "s8", "ui8": "u8"}
"""The names of matrix instructions, by the type of their operands."""

INSTRUCTIONS = tuple(
    MatrixInstruction(16, 8, depth, operands, accumulate)
    for operands, depth, accumulate in (
        ("bf16", 16, "f32"), ("f16", 16, "f32"), ("tf32", 8, "f32"), ("i8", 32, "i32"), ("ui8", 32, "ui32"),
    )
)  # fmt: skip

WARPGROUP_INSTRUCTIONS = tuple(
    MatrixInstruction(64, 8, depth, operands, accumulate)
    for operands, depth, accumulate in (
        ("bf16", 16, "f32"), ("f16", 16, "f32"), ("tf32", 8, "f32"), ("i8", 32, "i32"), ("ui8", 32, "ui32"),
    )
)  # fmt: skip
"""Those of Hopper: `wgmma`, with up to 32 times as many columns."""

WARPGROUP_KINDS = {"bf16": "bf16", "f16": "f16", "tf32": "tf32", "i8": "s8", "ui8": "u8"}

MODIFIERS = {"bf16": ", 1, 1, {0:d}, {1:d}", "f16": ", 1, 1, {0:d}, {1:d}", "tf32": ", 1, 1"}
"""The last operands of `wgmma` by type: factors of both matrices, and whether these are transposed."""

SWIZZLE_128 = 1 << 62
"""How `matrix` is permuted."""

FEATURES = {"sm_80": "+ptx80", "sm_90": "+ptx80", "sm_90a": "+ptx80", "sm_100": "+ptx86"}
"""For each architecture that code is emitted for, the version of PTX that has it."""


class Nvptx(Dialect):
    """NVVM's words."""

    convention = "ptx_kernel"
    optimization = 3
    makes_text = True
    shuffles = 32

    def limit(self, function: ll.Function, threads: int) -> None:
        _add(function, "maxntid", threads)

    def resident(self, code: Code, blocks: int) -> None:
        function = code.builder.function
        if isinstance(function, Body):
            function.resident = blocks  # of the launch that it belongs to
        else:
            _add(function, "minctasm", blocks)

    def thread(self, code: Code) -> ll.Value:
        return self._number(code, "tid")

    def grid_block(self, code: Code) -> ll.Value:
        return self._number(code, "ctaid")

    def barrier(self, code: Code) -> None:
        self.call(code, "llvm.nvvm.barrier.cta.sync.aligned.all", VOID, [I32(0)], "", ("convergent",))

    def warp_barrier(self, code: Code) -> None:
        self.call(code, "llvm.nvvm.bar.warp.sync", VOID, [I32(-1)], "", ("convergent",))

    def shuffled(self, code: Code, word: ll.Value, lanes: int | None) -> ll.Value:
        if lanes is None:
            return self._shuffle(code, word, "idx", 0)
        return self._shuffle(code, word, *(("down", lanes) if lanes > 0 else ("up", -lanes)))

    def exchanged(self, code: Code, word: ll.Value, lanes: int) -> ll.Value:
        return self._shuffle(code, word, "bfly", lanes)

    def _shuffle(self, code: Code, word: ll.Value, kind: str, operand: int) -> ll.Value:
        # The bounds of a warp.
        operands = [I32(-1), word, I32(operand), I32(0 if kind == "up" else 31)]
        return self.call(code, f"llvm.nvvm.shfl.sync.{kind}.i32", I32, operands, "", ("convergent",))

    def copy_async(self, code: Code, target: ll.Value, source: ll.Value, nbytes: ll.Value, size: int = 16) -> None:
        # Only what is copied 16 bytes at a time can leave the first level of caches out.
        kind = "cg.shared.global.16" if size == 16 else f"ca.shared.global.{size}"
        self.call(code, f"llvm.nvvm.cp.async.{kind}.s", VOID, [target, source, nbytes], "")

    def commit(self, code: Code) -> None:
        self.call(code, "llvm.nvvm.cp.async.commit.group", VOID, [], "")

    def wait(self, code: Code, groups: int) -> None:
        self.call(code, "llvm.nvvm.cp.async.wait.group", VOID, [I32(groups)], "")

    def load_matrix(self, code: Code, pointer: ll.Value, transposed: bool) -> list[ll.Value]:
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' if transposed else ''}.b16.p3"
        found = self.call(code, name, _four(I32), [pointer], "", ("convergent",))
        return [code.builder.extract_value(found, n) for n in range(4)]

    def multiply_add(
        self,
        code: Code,
        instruction: MatrixInstruction,
        lhs: Sequence[ll.Value],
        rhs: Sequence[ll.Value],
        sums: Sequence[ll.Value],
    ) -> list[ll.Value]:
        words = [*lhs, *rhs]
        if instruction.operands == "f16":
            words = [code.builder.bitcast(word, ll.VectorType(ll.HalfType(), 2)) for word in words]
        size = f"m{instruction.rows}n{instruction.columns}k{instruction.depth}"
        name = f"llvm.nvvm.mma.{size}.row.col.{KINDS[instruction.operands]}"
        found = self.call(code, name, _four(sums[0].type), [*words, *sums], "", ("convergent",))
        return [code.builder.extract_value(found, n) for n in range(4)]

    def rounded_to_tf32(self, code: Code, word: ll.Value) -> ll.Value:
        return self.call(code, "llvm.nvvm.f2tf32.rna", I32, [code.builder.bitcast(word, F32)], "")

    def packed(self, code: Code, dtype: str, low: ll.Value, high: ll.Value) -> ll.Value:
        kind = ll.HalfType() if dtype == "f16" else BF16
        found = self.call(code, f"llvm.nvvm.ff2{dtype}x2.rn", ll.VectorType(kind, 2), [high, low], "")
        return code.builder.bitcast(found, I32)

    def power_of_two(self, code: Code, exponent: ll.Value) -> ll.Value:
        return self.call(code, "llvm.nvvm.ex2.approx.ftz.f", F32, [exponent], "")

    def publish(self, code: Code) -> None:
        _assembly(code, "fence.proxy.async.shared::cta;")

    def matrix(self, code: Code, pointer: ll.Value, lead: int, stride: int) -> ll.Value:
        builder = code.builder
        # Addresses in shared memory have 18 bits; all fields are in units of 16 bytes.
        place = code.lshr(code.both(builder.ptrtoint(pointer, I32), (1 << 18) - 1), 4)
        facts = SWIZZLE_128 | stride >> 4 << 32 | lead >> 4 << 16
        return builder.or_(builder.zext(place, I64), I64(facts))

    def begin_products(self, code: Code, sums: Sequence[ll.Value]) -> list[ll.Value]:
        return _assembly(code, "wgmma.fence.sync.aligned;", sums)

    def multiply_shared(
        self,
        code: Code,
        instruction: MatrixInstruction,
        lhs: ll.Value | Sequence[ll.Value],
        rhs: ll.Value,
        across: tuple[bool, bool],
        sums: Sequence[ll.Value],
    ) -> list[ll.Value]:
        # Of each 8 columns, each of 128 threads has the sums of two, in two rows.
        size = f"m{instruction.rows}n{len(sums) // 4 * instruction.columns}k{instruction.depth}"
        kind, total = WARPGROUP_KINDS[instruction.operands], "f32" if instruction.accumulate == "f32" else "s32"
        registers = ", ".join(f"${number}" for number in range(len(sums)))
        modifiers, count = MODIFIERS.get(instruction.operands, ""), len(sums)
        text = f"wgmma.mma_async.sync.aligned.{size}.{total}.{kind}.{kind} {{{registers}}}, "
        if isinstance(lhs, ll.Value):
            operands, factors = [lhs, rhs], f"${count}, ${count + 1}"
        else:
            # What is in registers is not transposed.
            operands, modifiers = [*lhs, rhs], modifiers.replace(", {0:d}", "")
            factors = f"{{${count}, ${count + 1}, ${count + 2}, ${count + 3}}}, ${count + 4}"
        return _assembly(code, f"{text}{factors}, 1{modifiers.format(*across)};", sums, operands)

    def commit_products(self, code: Code) -> None:
        _assembly(code, "wgmma.commit_group.sync.aligned;")

    def end_products(self, code: Code, sums: Sequence[ll.Value], groups: int = 0) -> list[ll.Value]:
        return _assembly(code, f"wgmma.wait_group.sync.aligned {groups};", sums)

    def start_count(self, code: Code, count: ll.Value, threads: int = 1) -> None:
        _assembly(code, f"mbarrier.init.shared::cta.b64 [$0], {threads};", (), [count])

    def arrive(self, code: Code, count: ll.Value) -> None:
        _assembly(code, "mbarrier.arrive.shared::cta.b64 _, [$0];", (), [count])

    def expect(self, code: Code, count: ll.Value, nbytes: int) -> None:
        text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
        _assembly(code, text, (), [count, I32(nbytes)])

    def copy_box(
        self, code: Code, target: ll.Value, array: ll.Value, place: Sequence[ll.Value], count: ll.Value
    ) -> None:
        _assembly(code, f"{_copying(place, 'tile')};", (), [target, array, *place, count])

    def copy_windows(
        self,
        code: Code,
        target: ll.Value,
        array: ll.Value,
        place: Sequence[ll.Value],
        taps: Sequence[ll.Value],
        count: ll.Value,
    ) -> None:
        first = 3 + len(place)
        numbers = ", ".join(f"${number}" for number in range(first, first + len(taps)))
        text = f"{_copying(place, 'im2col')}, {{{numbers}}};"
        _assembly(code, text, (), [target, array, *place, count, *taps])

    def wait_for_phase(self, code: Code, count: ll.Value, phase: ll.Value) -> None:
        # The device suspends a thread that waits for some time, and then says that it waited in vain.
        again = "again_${:uid}"
        wait = "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1"
        _assembly(code, f"{{ .reg .pred done; {again}: {wait}; @!done bra {again}; }}", (), [count, phase])

    def take_registers(self, code: Code, count: int) -> None:
        _assembly(code, f"setmaxnreg.inc.sync.aligned.u32 {count};")

    def leave_registers(self, code: Code, count: int) -> None:
        _assembly(code, f"setmaxnreg.dec.sync.aligned.u32 {count};")

    def partial_barrier(self, code: Code, threads: int) -> None:
        # Barrier 0 is that of all threads.
        operands = I32(1), I32(threads)
        self.call(code, "llvm.nvvm.barrier.cta.sync.aligned.count", VOID, operands, "", ("convergent",))

    def resize(self, function: Entry, memory: ll.GlobalVariable, nbytes: int, alignment: int) -> None:
        super().resize(function, memory, nbytes, alignment)
        # What needs to be aligned is granted, too, so that nothing else is in its way.
        if nbytes > STATIC_MEMORY or alignment > SHARED_ALIGNMENT:
            assert not function.granted, "the memory that a launch grants is in one piece"
            function.granted = nbytes
            memory.linkage, memory.value_type, memory.initializer = "external", ll.ArrayType(I8, 0), None

    def _number(self, code: Code, register: str) -> ll.Value:
        return self.call(code, f"llvm.nvvm.read.ptx.sreg.{register}.x", I32, (), "")


def _copying(place: Sequence[ll.Value], mode: str) -> str:
    """Returns the instruction that begins to copy from a place of an array, up to the word that counts."""
    numbers = ", ".join(f"${number}" for number in range(2, 2 + len(place)))
    kind = f"cp.async.bulk.tensor.{len(place)}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return f"{kind} [$0], [$1, {{{numbers}}}], [${2 + len(place)}]"


def _add(function: ll.Function, name: str, number: int) -> None:
    # llvmlite knows no attributes with values, and its set refuses what it does not know.
    set.add(function.attributes, f'"nvvm.{name}"="{number}"')


def _assembly(
    code: Code, text: str, sums: Sequence[ll.Value] = (), operands: Sequence[ll.Value] = ()
) -> list[ll.Value]:
    """Emits an instruction that changes `sums` in their registers and reads `operands`, which are pointers, i64, i32
    or i16, and returns the sums."""
    letters = ["f" if total.type == F32 else "r" for total in sums]
    kinds = [{I16: "h", I32: "r"}.get(value.type, "l") for value in operands]
    ties = [str(number) for number in range(len(sums))]
    constraints = [*(f"={letter}" for letter in letters), *kinds, *ties, "~{memory}"]
    result = ll.LiteralStructType([total.type for total in sums]) if sums else VOID
    kind = ll.FunctionType(result, [value.type for value in (*operands, *sums)])
    assembly = ll.InlineAsm(kind, text, ",".join(constraints), side_effect=True)
    found = code.builder.call(assembly, [*operands, *sums], attrs=("convergent",))
    return [code.builder.extract_value(found, number) for number in range(len(sums))]


def _four(kind: ll.Type) -> ll.Type:
    return ll.LiteralStructType([kind] * 4)


def emitted_for(major: int, minor: int) -> str:
    """Returns the architecture that code for a device of this compute capability is emitted for: its own, if that has
    instructions which no other has, or the newest one that runs there."""
    own = f"sm_{major}{minor}a"
    if own in FEATURES:
        return own
    plain = {int(name[3:]): name for name in FEATURES if name[3:].isdecimal()}
    fitting = [number for number in plain if number <= 10 * major + minor]
    if not fitting:
        raise Error(f"a GPU of compute capability {major}.{minor} is too old, expected at least {min(plain) / 10}")
    return plain[max(fitting)]


def target(architecture: str) -> GpuTarget:
    """Returns an NVIDIA GPU with one of the architectures in `FEATURES`."""
    if architecture not in FEATURES:
        raise Error(f"unknown architecture {architecture!r}, expected one of {', '.join(FEATURES)}")
    return GpuTarget(
        triple=TRIPLE,
        cpu=architecture,
        features=FEATURES[architecture],
        constant_space=CONSTANT,
        launch_kind=launch_kind,
        extrema=True,
        rounds_to_bf16="llvm.nvvm.ff2bf16x2.rn",
        scans=True,
        largest_block=512,
        async_copies=True,
        matrix_instructions=INSTRUCTIONS,
        warpgroup_instructions=WARPGROUP_INSTRUCTIONS if architecture == "sm_90a" else (),
        bulk_copies=architecture == "sm_90a",
        # LLVM computes it from the quotient, which is rounded.
        remainder=False,
        wide_shifts=False,
    )
