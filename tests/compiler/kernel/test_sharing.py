"""Which arguments of a kernel may share bytes."""

from __future__ import annotations

from tests.compiler.kernel.kernels import scaled
from trivium.compiler.kernel import (
    KernelBuilder,
    may_share,
)


def test_sharing_wants_equal_indices() -> None:
    kernel = scaled()
    assert may_share(kernel, *kernel.params)
    b = KernelBuilder("transpose")
    x, y = b.input("x", "f32", (4, 4)), b.output("y", "f32", (4, 4))
    with b.parallel(4, 4) as (i, j):
        b.store(y, b.load(x, j, i), i, j)
    kernel = b.build()
    assert not may_share(kernel, x, y)
