"""What ways to compute contractions in tiles share: extents, where memory runs along the depth, and which elements
certainly exist."""

from __future__ import annotations

import llvmlite.ir as ll
import pytest

from tests.backends.gpu.test_contraction import product
from trivium.backends.gpu import nvptx
from trivium.backends.gpu.contracted import BAND, Contracted
from trivium.backends.gpu.contraction import TiledContraction
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.llvm.code import I32, Code
from trivium.backends.llvm.emitter import Emitter
from trivium.backends.llvm.workspace import Workspace, WorkspaceSize
from trivium.compiler.program import Launch
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.func import Module


def contracted(module: Module) -> Contracted:
    target = nvptx.target("sm_80")
    (step,) = Stages(module, target, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    dialect, kernel = Nvptx(), step.kernel
    assert kernel.contraction is not None
    function = dialect.define(ll.Module(), "k", len(kernel.params) + 1, 256)
    code = Code(ll.IRBuilder(function.append_basic_block()), target)
    buffers = dict(zip(kernel.params, function.args, strict=False))
    workspace = Workspace(function.args[-1], WorkspaceSize(0))
    return TiledContraction(
        kernel.contraction, code, dialect, I32(0), 32, lambda a, s: Emitter(code, a, s, buffers, workspace)
    )


@pytest.mark.parametrize(
    ("layout", "along"), [((1, 0), (True, False)), ((1, 1), (True, True)), ((0, 0), (False, False))]
)
def test_memory_along_the_depth(layout: tuple[int, int], along: tuple[bool, bool]) -> None:
    found = contracted(product(64, 48, 40, layout))
    sides = (found.mark.lhs, "m"), (found.mark.rhs, "n")
    assert tuple(found.runs_along_depth(*side) for side in sides) == along


def test_extents_and_guards() -> None:
    found = contracted(product(64, 48, 40))
    assert [found.extent(role) for role in ("batch", "m", "n", "k")] == [1, 64, 48, 40]
    assert found.inside("m", I32(3), 32) is None
    assert "icmp ult i32 3, 48" in str(found.inside("n", I32(3), 32))


def test_the_place_of_a_tile() -> None:
    found = contracted(product(64, 48, 40))
    place = found.place(I32(3))
    assert place.batch == {}
    # Of 2 x 2 tiles, all are in one band.
    text = str(found.builder.function)
    assert "urem i32 3, 4" in text
    assert f", {2 * BAND}" in text
