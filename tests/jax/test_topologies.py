"""JAX compiles ahead of time, for devices that it only has a description of."""

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jax")

from tests.jax.processes import run

SCRIPT = """
import numpy as np
import jax, jax.numpy as jnp
from jax.experimental import topologies
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.sharding import Mesh, NamedSharding, PartitionSpec
def sharded(devices):
    return NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))
described = sharded(topologies.get_topology_desc("cpu:2", platform="trivium").devices)
f = jax.jit(lambda x: x.sum() + x, in_shardings=described, out_shardings=described)
compiled = f.lower(jax.ShapeDtypeStruct((8,), jnp.float32)).compile()
assert compiled.cost_analysis()["flops"] > 0
loaded = deserialize_and_load(*serialize(compiled), execution_devices=jax.devices())
result = loaded(jax.device_put(jnp.arange(8.0), sharded(jax.devices())))
assert len(result.sharding.device_set) == 2
print(*np.asarray(result).astype(int))
"""


def test_a_program_is_compiled_for_a_topology_and_runs_on_its_devices() -> None:
    done = run("-c", SCRIPT, TRIVIUM_NUM_DEVICES="2")
    assert done.stdout.split() == [str(28 + number) for number in range(8)], done.stderr
