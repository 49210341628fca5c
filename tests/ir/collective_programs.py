"""Programs of JAX for a mesh of two by two devices, and what they compute there. They are run by a process of their
own, `python -m tests.ir.collective_programs FILE`, since JAX counts its devices once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

DEVICES = 4
FLAGS = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}", "JAX_PLATFORMS": "cpu"}
ARRAY = np.random.default_rng(0).integers(-50, 50, (16, 3)).astype(np.float32)
"""Whole numbers, whose sum is exact in any order. Each device has four rows."""

NAMES = ("psum_rows", "psum_columns", "psum_all", "pmax", "pmean", "all_gather", "all_gather_tiled", "all_to_all")
NAMES += ("psum_scatter", "ppermute", "ppermute_some", "pshuffle", "axis_index", "loop")


def write(path: Path) -> None:
    """Writes the text of each program, and its result: the parts of all devices, concatenated along the rows."""
    import jax
    from jax import lax
    from jax.sharding import Mesh, PartitionSpec

    functions = {
        "psum_rows": lambda x: lax.psum(x, "a"),
        "psum_columns": lambda x: lax.psum(x, "b"),
        "psum_all": lambda x: lax.psum(x, ("a", "b")),
        "pmax": lambda x: lax.pmax(x, "b"),
        "pmean": lambda x: lax.pmean(x, ("b", "a")),
        "all_gather": lambda x: lax.all_gather(x, "b"),
        "all_gather_tiled": lambda x: lax.all_gather(x, ("a", "b"), axis=1, tiled=True),
        "all_to_all": lambda x: lax.all_to_all(x, "a", 0, 1, tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, "b", scatter_dimension=0, tiled=True),
        "ppermute": lambda x: lax.ppermute(x, "a", [(0, 1), (1, 0)]),
        "ppermute_some": lambda x: lax.ppermute(x, "b", [(0, 1)]),
        "pshuffle": lambda x: lax.pshuffle(x, "b", [1, 0]),
        "axis_index": lambda x: x + lax.axis_index("b") * 10 + lax.axis_index("a"),
        "loop": lambda x: lax.fori_loop(0, 3, lambda turn, y: lax.psum(y, "a") + turn, x),
    }
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    spec = PartitionSpec(("a", "b"))
    found = {}
    for name in NAMES:
        mapped = jax.shard_map(functions[name], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        found[f"{name}.text"] = jax.jit(mapped).lower(ARRAY).as_text()
        found[f"{name}.result"] = np.asarray(jax.jit(mapped)(ARRAY))
    np.savez(path, **found)


if __name__ == "__main__":
    os.environ.update(FLAGS)
    write(Path(sys.argv[1]))
