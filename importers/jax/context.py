"""The context of a JAX rule: the emitter's vocabulary, the types of the equation's results, and the jaxprs inside
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.core import AbstractValue, ShapedArray
from jax.extend import core

from trivium.importers import context
from trivium.importers.common import Rules
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import TensorType, element_type_of

rule = Rules("JAX")
"""The table of all JAX rules; names are those of primitives, `dot_general`. A rule's positional parameters are the
equation's operands in order, the others the primitive's parameters by name."""

WITHOUT_MEANING = frozenset(
    {
        # already determined by the types of the results
        *("dtype", "new_dtype", "out_dtype", "index_dtype", "input_dtype", "preferred_element_type", "weak_type"),
        *("result_avals", "vmap_method"),
        # the devices of values, and their layout in memory
        *("sharding", "out_sharding", "in_shardings", "out_shardings", "dst_sharding", "unconstrained_dims"),
        *("layout", "in_layouts", "out_layouts", "ctx_mesh", "context_mesh", "concrete_mesh", "memory_space"),
        *("devices", "srcs", "copy_semantics", "donated_invars", "branches_platforms", "partition", "sharding_rule"),
        *("propagate_user_sharding", "infer_sharding_from_operands", "decode_shardings"),
        # how JAX would compile a call, and parameters that only differentiation uses
        *("name", "inline", "keep_unused", "compiler_options_kvs", "options", "unroll", "_split_transpose"),
        *("prevent_cse", "differentiated", "policy", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "out_trees"),
        *("in_tree", "out_tree", "static_args", "num_consts", "symbolic_zeros", "computation"),
        # a promise by the user
        "unique_indices",
        # already determined by the operand's type
        "impl",
    }
)
"""Parameters of primitives that do not change what a program means."""

Ints = Sequence[int]
Padding = Sequence[tuple[int, int]]
Jaxpr = core.ClosedJaxpr | core.Jaxpr
Rule = Callable[..., Value | Sequence[Value]]


class Context(context.Context[Jaxpr, Value]):
    """An emitter at the equation under conversion."""

    operands: tuple[ShapedArray, ...] = ()
    """The abstract values of the equation's operands."""

    def trace(self, function: Callable[..., object], *values: Value) -> Sequence[Value]:
        """Converts a JAX function of arrays in place: for primitives that JAX itself defines in terms of others."""
        examples = [jax.ShapeDtypeStruct(value.type.shape, value.type.dtype) for value in values]
        return self.inline(jax.make_jaxpr(function)(*examples), *values)


def is_key(aval: ShapedArray | jax.Array) -> bool:
    """Whether a value is an array of random keys (`key<fry>[...]`)."""
    return jnp.issubdtype(aval.dtype, jax.dtypes.prng_key)


def key_shape(aval: ShapedArray) -> tuple[int, ...]:
    """Returns the shape of the words of one element: a key is several `ui32`s in additional dimensions, a number has
    none."""
    return tuple(aval.dtype._impl.key_shape) if is_key(aval) else ()


def array_of(aval: AbstractValue) -> ShapedArray:
    """Returns an abstract value that must be an array."""
    if not isinstance(aval, ShapedArray):
        raise Error(f"a value has the type {aval}, expected an array")
    return aval


def type_of(aval: AbstractValue) -> TensorType:
    """Returns the type of an abstract value. Keys become the words that they consist of."""
    aval = array_of(aval)
    if is_key(aval):
        return TensorType((*aval.shape, *key_shape(aval)), element_type_of("uint32"))
    dtype = "bool" if aval.dtype == jax.dtypes.float0 else aval.dtype
    return TensorType(tuple(aval.shape), element_type_of(dtype))
