"""Every primitive that JAX can lower on a CPU has a rule, or is listed here with the reason for its absence."""

import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.jax

COLLECTIVE = {
    *("all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pmax", "pmin", "psum"),
    *("ppermute", "precv", "preduced", "psend", "psum_invariant", "ragged_all_to_all", "reduce_scatter", "shard_map"),
    *("reduced_vary_cast_p", "unreduced_psum", "unreduced_reduce_scatter", "vary_unreduced_cast_p"),
    *("all_gather_start", "all_gather_done", "all_gather_reduced_start", "all_to_all_start", "all_to_all_done"),
    *("pbroadcast_done", "ppermute_start", "ppermute_done", "psum_start", "psum_done", "psum_invariant_start"),
    *("reduce_scatter_start", "reduce_scatter_done", "unreduced_psum_start", "unreduced_reduce_scatter_start"),
}
"""Primitives that exchange values among devices."""

SYMBOLIC = {"dim_as_value", "dimension_size", "shape_assertion"}
"""Primitives of exported functions with symbolic shapes."""

OTHERS = {
    "core_map": "a kernel of Pallas",
    "after_all": "a token, of which no other primitive makes use",
    "create_token": "a token, of which no other primitive makes use",
    "check": "an error of checkify that nobody handled",
    "create_linear": "a reference of the state's",
    "pin": "a reference of the state's",
    "unpin": "a reference of the state's",
    "custom_lin": "JAX raises an error for it",
    "unreachable": "JAX raises an error for it",
    "from_edtype": "an extended type's own form",
    "to_edtype": "an extended type's own form",
    "inspect_sharding": "it asks how devices share a value",
}


SCRIPT = """
import jax, trivium.importers.jax
from jax._src.interpreters import mlir
from trivium.importers.jax.context import rule
from trivium.importers.jax.definitions import definition_of

for table in (mlir._lowerings, mlir._platform_specific_lowerings["cpu"]):
    for primitive in table:
        print(primitive.name, primitive.name in rule or definition_of(primitive) is not None)
"""


def test_primitives_without_a_rule() -> None:
    # Imports register primitives, so this runs in a separate process, which has only those of JAX itself.
    run = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    known = {name: found == "True" for name, _, found in (line.partition(" ") for line in run.stdout.splitlines())}
    assert len(known) > 230
    listed = {*COLLECTIVE, *SYMBOLIC, *OTHERS}
    assert sorted(name for name, found in known.items() if not found and name not in listed) == []
    assert sorted(name for name in listed if known.get(name, True)) == []
