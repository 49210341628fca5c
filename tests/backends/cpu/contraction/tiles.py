"""Products whose operands are bytes or bf16, for instructions that multiply tiles."""

from __future__ import annotations

from dataclasses import replace

import llvmlite.ir as ll
import ml_dtypes
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import Case, whole
from trivium.backends.cpu.contraction.kernels import Lowering
from trivium.backends.cpu.jit import parsed
from trivium.backends.cpu.target import AMX, CpuTarget, host, level
from trivium.backends.llvm.workspace import WorkspaceSize

PLAIN, TURNED = (0, 1, 2), (0, 2, 1)
BYTES = {"i8": (-128, 127, np.int8), "ui8": (0, 255, np.uint8)}
BF16 = ml_dtypes.bfloat16
SIZES = ((1, 128, 96, 192), (2, 40, 50, 70), (3, 17, 33, 300), (1, 20, 18, 20000))
"""Batch, rows, columns and terms: whole tiles, ragged ones, and several blocks."""

has = {one.operands for one in host().matrix_instructions if not one.in_vectors}
multiplies_bytes = pytest.mark.skipif("i8" not in has, reason="this processor does not multiply tiles of bytes")
multiplies_bf16 = pytest.mark.skipif("bf16" not in has, reason="this processor does not multiply tiles of bf16")


def with_tiles() -> CpuTarget:
    """A processor that multiplies tiles, which LLVM generates code for anywhere."""
    plain = level("x86-64-v4")
    features = f"{plain.features},+amx-tile,{','.join('+' + name for name in AMX)}"
    return replace(plain, features=features, matrix_instructions=tuple(AMX.values()))


def bytes_of(kind: str, *shape: int) -> np.ndarray:
    low, high, dtype = BYTES[kind]
    return whole(low, high, *shape, dtype=dtype)


def assembly(case: Case, target: CpuTarget, constants: frozenset[str] = frozenset()) -> str:
    """Returns a kernel's instructions on a processor other than this one."""
    module = ll.Module()
    module.triple = target.triple
    Lowering(case.kernel, target, constants).emit(module, "product", WorkspaceSize()).linkage = ""
    return target.machine().emit_assembly(parsed(str(module)))


def assert_exact(case: Case, lhs: np.ndarray, rhs: np.ndarray, constants: set[str], threads: int = 1) -> None:
    assert Lowering(case.kernel, host(), frozenset(constants)).tiling.matrix is not None
    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32)
    np.testing.assert_array_equal(case.run(constants, threads), wanted)
