"""Decompositions of ops into others that kernels support: rules by family, in one table."""

from trivium.compiler.passes.decompositions import (  # noqa: F401  fill the table
    batch_norm,
    bits,
    chlo,
    collectives,
    einsum,
    fourier,
    linalg,
    older,
    random,
)
from trivium.compiler.passes.decompositions.table import DECOMPOSITIONS

__all__ = ["DECOMPOSITIONS"]
