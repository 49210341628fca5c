"""Run as a program, on four devices that JAX makes of one CPU: exports sharded functions, writes them again with
Trivium, and has JAX run both. The exported files are left in the folder that is named."""

import dataclasses
import sys
from pathlib import Path

import jax
import numpy as np
from jax import export, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trivium.ir.bytecode import deserialize, serialize

MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
X = np.arange(16, dtype=np.float32).reshape(4, 4)


def sharding(*axes):
    return NamedSharding(MESH, PartitionSpec(*axes))


def constrained(x):
    return lax.with_sharding_constraint(x * 2, sharding("y", "x")) + 1


def summed(x):
    part = PartitionSpec("x", "y")
    return jax.shard_map(
        lambda part: lax.psum(part, "x"), mesh=MESH, in_specs=part, out_specs=PartitionSpec(None, "y")
    )(x)


def looped(x):
    return lax.fori_loop(0, 3, lambda _, x: lax.with_sharding_constraint(x @ x, sharding("x")), x)


PROGRAMS = {"constrained": constrained, "summed": summed, "looped": looped}


def main(folder: Path) -> None:
    for name, function in PROGRAMS.items():
        exported = export.export(jax.jit(function, in_shardings=sharding("x", "y")))(X)
        (folder / f"{name}.mlirbc").write_bytes(exported.mlir_module_serialized)
        again = serialize(deserialize(exported.mlir_module_serialized))
        ours = dataclasses.replace(exported, mlir_module_serialized=again)
        given = jax.device_put(X, sharding("x", "y"))
        np.testing.assert_array_equal(jax.jit(ours.call)(given), jax.jit(function)(given))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
