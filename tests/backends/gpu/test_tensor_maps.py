"""Which operands of products a device can copy in boxes, as they are in memory."""

from __future__ import annotations

import pytest

from trivium.backends.gpu.tensor_maps import view
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop, Role, Subscript
from trivium.compiler.kernel.index import Index, variable
from trivium.compiler.kernel.structure import Block, Buffer

B, M, K = "batch", "m", "k"


def loops(*sizes: tuple[Role, int]) -> list[ContractionLoop]:
    return [ContractionLoop(role, extent) for role, extent in sizes]


def operand(
    found: list[ContractionLoop], shape: tuple[int, ...], *positions: Index, dtype: str = "bf16", **places: object
) -> Contraction:
    """Returns a product whose left operand has this shape and these positions."""
    lhs = Access(Buffer("x", dtype, shape, "in", **places), tuple(map(Subscript, positions)))  # type: ignore[arg-type]
    other = ContractionLoop("n", 64)
    depth = [loop for loop in found if loop.role == "k"]
    rhs = Access(Buffer("y", dtype, (64,), "in"), (Subscript(variable(other)),))  # type: ignore[arg-type]
    return Contraction((*(loop for loop in found if loop not in depth), other, *depth), lhs, rhs, "f32", Block())


def dimensions(mark: Contraction) -> list[tuple[str, int, int]] | None:
    """Returns the role, extent and step of each dimension."""
    found = view(mark, "m")
    return None if found is None else [(one.role, one.extent, one.step) for one in found.dimensions]


def test_a_matrix() -> None:
    m, k = found = loops((M, 40), (K, 24))
    mark = operand(found, (40, 24), variable(m), variable(k))
    assert dimensions(mark) == [("k", 24, 1), ("m", 40, 24)]
    one = view(mark, "m")
    assert one is not None
    assert (one.offset, one.across, one.box({"m": 128, "n": 128})) == (0, False, (64, 128))


def test_a_matrix_that_is_transposed() -> None:
    m, k = found = loops((M, 40), (K, 24))
    mark = operand(found, (24, 40), variable(k), variable(m))
    assert dimensions(mark) == [("m", 40, 1), ("k", 24, 40)]
    one = view(mark, "m")
    assert one is not None
    assert (one.across, one.box({"m": 128, "n": 128})) == (True, (64, 64))
    assert one.fits
    # Matrix instructions transpose no other types.
    one = view(operand(found, (24, 40), variable(k), variable(m), dtype="f32"), "m")
    assert one is not None
    assert one.across
    assert not one.fits


def test_loops_that_are_one_dimension() -> None:
    m, n, one, k, j = found = loops((M, 5), (M, 8), (M, 1), (K, 3), (K, 16))
    mark = operand(found, (5, 8, 1, 3, 16), *map(variable, (m, n, one, k, j)))
    assert dimensions(mark) == [("k", 48, 1), ("m", 40, 48)]
    # Rows of rows, in another order than they are numbered.
    assert dimensions(operand(found, (8, 5, 1, 3, 16), *map(variable, (n, m, one, k, j)))) is None


def test_batches() -> None:
    a, b, m, k = found = loops((B, 2), (B, 3), (M, 40), (K, 16))
    mark = operand(found, (2, 40, 3, 16), *map(variable, (a, m, b, k)))
    assert dimensions(mark) == [("k", 16, 1), ("batch", 3, 16), ("m", 40, 48), ("batch", 2, 1920)]
    one = view(mark, "m")
    assert one is not None
    assert one.box({"m": 64, "n": 64}) == (64, 1, 64, 1)
    # One matrix for all.
    assert dimensions(operand(found, (40, 16), variable(m), variable(k))) == [("k", 16, 1), ("m", 40, 16)]


def test_the_first_element_is_at_a_multiple_of_16_bytes() -> None:
    m, k = found = loops((M, 40), (K, 24))
    mark = operand(found, (41, 32), variable(m) + 1, variable(k) + 8)
    one = view(mark, "m")
    assert one is not None
    assert one.offset == 40
    assert dimensions(operand(found, (41, 32), variable(m) + 1, variable(k) + 4)) is None
    assert dimensions(operand(found, (40, 24), variable(m), variable(k), offset=8)) is not None
    assert dimensions(operand(found, (40, 24), variable(m), variable(k), offset=2)) is None


@pytest.mark.parametrize("strides", [(23, 1), (28, 1), (8, 1), (24, 2)])
def test_distances(strides: tuple[int, int]) -> None:
    """Not of 16 bytes; lines that overlap; elements that are no neighbours."""
    m, k = found = loops((M, 40), (K, 24))
    assert dimensions(operand(found, (40, 24), variable(m), variable(k), strides=strides)) is None
    assert dimensions(operand(found, (40, 24), variable(m), variable(k), strides=(32, 1))) is not None


def test_padding_and_other_indices() -> None:
    m, k = found = loops((M, 40), (K, 24))
    assert dimensions(operand(found, (39, 24), variable(m), variable(k))) is None
    assert dimensions(operand(found, (40, 24), variable(m), variable(k) % 8)) is None


def test_more_dimensions_than_there_are() -> None:
    *batch, m, k = found = loops((B, 2), (B, 2), (B, 2), (B, 2), (M, 40), (K, 16))
    shape = (2, 2, 2, 2, 40, 16)
    # Loops of the batch that follow one another are one dimension.
    positions = [variable(loop) for loop in (*batch, m, k)]
    assert dimensions(operand(found, shape, *positions)) == [("k", 16, 1), ("m", 40, 16), ("batch", 16, 640)]
    turned = [variable(loop) for loop in (*batch[::-1], m, k)]
    assert dimensions(operand(found, shape, *turned)) is None
