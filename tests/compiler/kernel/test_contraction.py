"""The mark of contractions."""

from __future__ import annotations

from tests.compiler.kernel.kernels import matmul
from trivium.compiler.kernel import (
    Access,
    Buffer,
    ContractionLoop,
    Subscript,
)
from trivium.compiler.kernel.index import variable


def test_contractions_carry_their_plain_meaning() -> None:
    kernel = matmul()
    assert kernel.contraction is not None
    assert "reduction" in str(kernel)
    assert "contraction (m4 n5 k6) a[l0, l2] * w[l2, l1] in f32" in str(kernel)


def test_padding_is_known_from_the_loops() -> None:
    loops = (ContractionLoop("m", 10), ContractionLoop("n", 1), ContractionLoop("k", 3))
    image = Buffer("image", "f32", (10,), "in")
    place, _, tap = map(variable, loops)
    assert not Access(image, (Subscript(place),)).padded(0)
    assert Access(image, (Subscript(place + tap - 1),)).padded(0)
    assert Access(image, (Subscript(place, dilation=2),)).padded(0)


def test_loops_by_their_roles() -> None:
    contraction = matmul().contraction
    assert contraction is not None
    assert [contraction.extents(role) for role in ("batch", "m", "n", "k")] == [(), (4,), (5,), (6,)]
    assert contraction.positions("k") == (2,)
