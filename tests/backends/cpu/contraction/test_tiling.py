"""Tilings: whole, and within registers and caches."""

from __future__ import annotations

from itertools import product

from trivium.backends.cpu.contraction.tiling import split


def test_split_is_even_and_whole() -> None:
    for extent, most in product(range(1, 40), range(1, 9)):
        parts = split(extent, most)
        assert sum(parts.sizes) == extent
        assert max(parts.sizes) <= most
        assert max(parts.sizes) - min(parts.sizes) <= 1
        assert [parts.start(i) for i in range(parts.count)] == [sum(parts.sizes[:i]) for i in range(parts.count)]
