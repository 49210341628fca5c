"""PTX, which NVIDIA's driver compiles for the GPU that it finds."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import F32, I32, Code
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
        _add(code.builder.function, "minctasm", blocks)

    def thread(self, code: Code) -> ll.Value:
        return self._number(code, "tid")

    def grid_block(self, code: Code) -> ll.Value:
        return self._number(code, "ctaid")

    def barrier(self, code: Code) -> None:
        self.call(code, "llvm.nvvm.barrier.cta.sync.aligned.all", VOID, [I32(0)], "", ("convergent",))

    def shuffled(self, code: Code, word: ll.Value, lanes: int | None) -> ll.Value:
        return self._shuffle(code, word, *(("idx", 0) if lanes is None else ("down", lanes)))

    def exchanged(self, code: Code, word: ll.Value, lanes: int) -> ll.Value:
        return self._shuffle(code, word, "bfly", lanes)

    def _shuffle(self, code: Code, word: ll.Value, kind: str, operand: int) -> ll.Value:
        operands = [I32(-1), word, I32(operand), I32(31)]
        return self.call(code, f"llvm.nvvm.shfl.sync.{kind}.i32", I32, operands, "", ("convergent",))

    def copy_async(self, code: Code, target: ll.Value, source: ll.Value, nbytes: ll.Value) -> None:
        self.call(code, "llvm.nvvm.cp.async.cg.shared.global.16.s", VOID, [target, source, nbytes], "")

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

    def _number(self, code: Code, register: str) -> ll.Value:
        return self.call(code, f"llvm.nvvm.read.ptx.sreg.{register}.x", I32, (), "")


def _add(function: ll.Function, name: str, number: int) -> None:
    # llvmlite knows no attributes with values, and its set refuses what it does not know.
    set.add(function.attributes, f'"nvvm.{name}"="{number}"')


def _four(kind: ll.Type) -> ll.Type:
    return ll.LiteralStructType([kind] * 4)


def emitted_for(major: int, minor: int) -> str:
    """Returns the architecture that code for a device of this compute capability is emitted for: the newest one that
    runs there."""
    plain = {int(name[3:]): name for name in FEATURES if name[3:].isdecimal()}
    fitting = [number for number in plain if number <= 10 * major + minor]
    if not fitting:
        raise Error(f"a GPU of compute capability {major}.{minor} is too old, expected at least {min(plain) / 10}")
    return plain[max(fitting)]


def target(architecture: str) -> GpuTarget:
    """Returns a GPU of NVIDIA's, of one of `FEATURES`."""
    if architecture not in FEATURES:
        raise Error(f"unknown architecture {architecture!r}, expected one of {', '.join(FEATURES)}")
    return GpuTarget(
        triple=TRIPLE,
        cpu=architecture,
        features=FEATURES[architecture],
        constant_space=CONSTANT,
        largest_block=512,
        matrix_instructions=INSTRUCTIONS,
        # LLVM computes it from the quotient, which is rounded.
        remainder=False,
    )
