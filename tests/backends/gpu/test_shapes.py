"""The shapes of tiles of f32 products: large tiles for large products, several blocks for each tile where there are
few, and factors that threads can copy as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.gpu.test_contraction import product
from trivium.backends.gpu import nvptx, shapes, tiles
from trivium.backends.gpu.schedule import parallel_loop
from trivium.backends.gpu.shapes import SHAPES, Shape
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.structure import Block, Loop
from trivium.compiler.program import Launch
from trivium.compiler.stages import CompileOptions, Stages

TARGET = nvptx.target("sm_90a")


def marked(rows: int, columns: int, depth: int, dtype: str = "f32") -> tuple[Contraction, Loop]:
    (step,) = Stages(product(rows, columns, depth, dtype=dtype), TARGET, CompileOptions()).program.steps
    assert isinstance(step, Launch)
    mark, loop = step.kernel.contraction, parallel_loop(step.kernel)
    assert mark is not None
    assert loop is not None
    return mark, loop


def test_large_products_have_large_tiles() -> None:
    mark, loop = marked(4096, 4096, 4096)
    (plan,) = shapes.plans(mark, loop)
    found = shapes.shape_of(plan)
    assert found is not None
    assert found.rows * found.columns >= 128 * 64
    assert shapes.parts(mark, found) == 1
    assert tiles.launch(plan) == (1 << 24, (1 << 24) // (found.rows * found.columns), found.threads)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(128, 768, 768), (128, 768, 3072), (49, 512, 4608)])
def test_few_tiles_are_shared(rows: int, columns: int, depth: int) -> None:
    """Enough blocks share a tile that most multiprocessors have one."""
    mark, loop = marked(rows, columns, depth)
    (plan,) = shapes.plans(mark, loop)
    found = shapes.shape_of(plan)
    assert found is not None
    assert tiles.launch(plan)[1] * tiles.parts(mark, plan) >= 100


def test_parts_are_whole_pieces() -> None:
    mark, _ = marked(128, 768, 1000)
    for shape in (*SHAPES, Shape(32, 64, 256, 64, 2, 8)):
        for count in shapes.counts(mark, shape)[1:]:
            size = shapes.part_size(mark, shape, count)
            assert size % shape.depth == 0
            assert (count - 1) * size < 1000 <= count * size


def test_shapes_can_be_shared_out() -> None:
    """Among warps of 4 x 8 threads, and among slices."""
    for shape in SHAPES:
        rows, columns = shape.sums
        assert shape.rows // rows * (shape.columns // columns) * shape.slices == shape.threads
        assert shape.rows // rows % 4 == shape.columns // columns % 8 == 0
        assert rows % shape.slices == shape.depth % (8 * shape.slices) % 8 == 0


@pytest.mark.parametrize(("dtype", "fits"), [("f32", True), ("bf16", False), ("f64", False)])
def test_factors_are_copied_as_they_are(dtype: str, fits: bool) -> None:
    mark, _ = marked(64, 64, 64, dtype)
    assert shapes.fits(mark, TARGET) is fits
    assert not shapes.fits(mark, replace(TARGET, async_copies=False))
    assert not shapes.fits(replace(mark, rhs_prologue=Block()), TARGET)
