"""Every primitive that JAX can lower on a CPU has a rule, or is listed here with the reason why not."""

import pytest

jax = pytest.importorskip("jax")

from jax._src.interpreters import mlir

from trivium.importers.jax.context import rule
from trivium.importers.jax.definitions import definition_of

pytestmark = pytest.mark.jax

COLLECTIVE = {
    *("all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pmax", "pmin", "psum"),
    *("ppermute", "precv", "preduced", "psend", "psum_invariant", "ragged_all_to_all", "reduce_scatter", "shard_map"),
    *("reduced_vary_cast_p", "unreduced_psum", "unreduced_reduce_scatter", "vary_unreduced_cast_p"),
    *("all_gather_start", "all_gather_done", "all_gather_reduced_start", "all_to_all_start", "all_to_all_done"),
    *("pbroadcast_done", "ppermute_start", "ppermute_done", "psum_start", "psum_done", "psum_invariant_start"),
    *("reduce_scatter_start", "reduce_scatter_done", "unreduced_psum_start", "unreduced_reduce_scatter_start"),
}
"""These exchange values among devices."""

SYMBOLIC = {"dim_as_value", "dimension_size", "shape_assertion"}
"""These are of exported functions of symbolic shapes."""

PALLAS = {"core_map", "mpmd_map", "multiple_of", "pallas_call", "reciprocal", "run_scoped"}
"""These are of kernels that Pallas writes, which are for other devices."""

OTHERS = {
    "call_tf": "a function of TensorFlow",
    "global_array_to_host_local_array": "arrays of several hosts",
    "host_local_array_to_global_array": "arrays of several hosts",
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
    "csr_spmv": "jax.experimental.sparse's routine of the CPU",
    "csr_spmm": "jax.experimental.sparse's routine of the CPU",
    "spsolve": "jax.experimental.sparse's routine of the CPU",
}


def test_primitives_without_a_rule() -> None:
    tables = (mlir._lowerings, mlir._platform_specific_lowerings["cpu"])
    primitives = {primitive.name: primitive for table in tables for primitive in table}
    missing = {name for name, primitive in primitives.items() if name not in rule and definition_of(primitive) is None}
    assert sorted(missing - COLLECTIVE - SYMBOLIC - PALLAS - OTHERS.keys()) == []
    assert len(primitives) > 250
    listed = {*COLLECTIVE, *SYMBOLIC, *PALLAS, *OTHERS}
    assert sorted(name for name in listed & primitives.keys() if name not in missing) == []
