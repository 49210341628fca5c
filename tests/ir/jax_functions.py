"""The functions of JAX that its recorded programs are named after: `vmap_transpose_float32_2_3_permutation_1_0` is
`lax.transpose(x, (1, 0))`, mapped over a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def function_of(name: str) -> Callable[..., Any] | None:
    """Returns the function that a program computes, by its name; `None` if the name does not fully describe it."""
    bare = name.removeprefix("vmap_")
    for pattern, function in FUNCTIONS.items():
        if match := re.fullmatch(pattern, bare):
            return _mapped(name, partial(_with_words, function, match.groups()))
    operation = next((ELEMENTWISE[word] for word in ELEMENTWISE if re.match(rf"{word}(_|$)", bare)), None)
    return operation and _mapped(name, lambda *arrays: operation(*jnp.broadcast_arrays(*arrays)))


def _mapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(function) if name.startswith("vmap_") else function)


def _with_words(function: Callable[..., Any], groups: Sequence[str], *arrays: Any) -> Any:
    return function(*arrays, *map(_words, groups))


def _words(text: str) -> Any:
    """Returns what a part of a name expresses: whole numbers, or a dtype."""
    return text if re.search("[a-z]", text) else tuple(map(int, text.strip("_").split("_"))) if text else ()


ELEMENTWISE = {
    **{name: getattr(lax, name) for name in ("abs", "acos", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil")},
    **{name: getattr(lax, name) for name in ("cosh", "erfc", "is_finite", "lgamma", "logistic", "rsqrt", "sign")},
    **{name: getattr(lax, name) for name in ("sin", "sqrt", "add", "complex", "conj", "div", "eq", "ge", "gt", "lt")},
    **{name: getattr(lax, name) for name in ("max", "min", "mul", "ne", "nextafter", "pow", "rem", "sub")},
    **{name: getattr(lax, name) for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")},
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "device_put": lambda x: x,
    "zeros_like": jnp.zeros_like,
}
"""Functions by the first word of the name; types and shapes follow it. Operands are broadcast."""


def convolve(lhs: Any, rhs: Any, stride: int = 1, padding: Any = "SAME", dilation: int = 1) -> Any:
    numbers = lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
    return lax.conv_general_dilated(lhs, rhs, (stride,), padding, lhs_dilation=(dilation,), dimension_numbers=numbers)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # JAX's primitives. In the name, their parameters follow the shapes.
    r"argmax_0": lambda x: lax.argmax(x, 0, jnp.int32),
    r"argmax": lambda x: lax.argmax(x, 1, jnp.int32),
    r"arg(max|min)(?:_special.*|)_float32_\d+": lambda x, word: getattr(lax, f"arg{word}")(x, 0, jnp.int32),
    r"argmin_index_dtype_float32_15": lambda x: lax.argmin(x, 0, jnp.uint8),
    r"bitcast_convert_type_.*_newdtype_(.*)": lax.bitcast_convert_type,
    r"broadcast_in_dim_.*_out(4_3_2)_broadcastdimensions_(.*)": lax.broadcast_in_dim,
    r"broadcast_in_dim_.*_out(3_2)_broadcastdimensions_(.*)": lax.broadcast_in_dim,
    r"clamp.*": lax.clamp,
    r"collapse": lambda x: lax.collapse(x, 1, 4),
    r"concatenate": lambda x: lax.concatenate((x, x), 0),
    r"concatenate_.*dimension_(.*)": lambda x, y, dimension: lax.concatenate((x, y), *dimension),
    r"conv_general_dilated_1d_[23]": lambda x, y: convolve(x, y, padding=[(2, 2)], dilation=2),
    r"conv_general_dilated_1d_stride_(\d).*": lambda x, y, stride: convolve(x, y, *stride),
    r"convert_element_type_.*_newdtype_(.*)": lambda x, dtype: lax.convert_element_type(x, jnp.dtype(dtype)),
    r"dot_general_(?:and_precision_lhs_float32_3_4|preferred|squeeze)_.*": jnp.matmul,
    r"dot_general": lambda x, y: jnp.einsum("bij,bj->bi", x, y),
    r"dynamic_slice": lambda x, start: lax.dynamic_slice(x, start, (len(x), 2)),
    r"dynamic_update_slice": lambda x, *where: lax.dynamic_update_slice(x, *(where or (x, (0, 0)))),
    r"gather_from_take_name_(?:1|3|6_neg)": lambda x, at: jnp.take(x, at, 0),
    r"gather_from_take_name_.*_axis_2": lambda x, at: jnp.take(x, at, 2),
    r"integer_pow_.*_y_(.*)": lambda x, power: lax.integer_pow(x, *power),
    r"pad_inbfloat16_2_3_pads_0_0_0_-1_-1_0": lambda x, value: lax.pad(x, value, [(0, 0, 0), (-1, -1, 0)]),
    r"pad": lambda x, value: lax.pad(x, value, [(0, 0, 0), (0, 0, 0), (1, 1, 1)]),
    r"reduce_and_bool_2_3": lambda x: jnp.all(x, 0),
    r"reduce_or_bool_2_3": lambda x: jnp.any(x, 0),
    r"reduce_min_bfloat16_2_3": lambda x: jnp.min(x, 0),
    r"reduce_precision_.*_out_float32.*": lambda x: lax.reduce_precision(x, 8, 23),
    r"reduce_precision_.*_out_float64.*": lambda x: lax.reduce_precision(x, 11, 52),
    r"re(?:dimensions|new_sizes)_float32_.*_newsizes_(.*)_dimensions_(.*)": lax.reshape,
    r"rev_dimensions_float32_3_4_5_dimensions_?(.*)": lax.rev,
    r"round_rounding_methods_.*_1": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    r"select_n_.*": lax.select_n,
    r"sort": lambda x: lax.sort(x, dimension=0),
    r"squeeze_.*_dimensions_(.*)": lax.squeeze,
    r"transpose_.*_permutation_(.*)": lax.transpose,
    r"triangular_solve_a_.*": lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, unit_diagonal=True),
    r"triangular_solve_complex_transformations_.*": lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=True, lower=True
    ),
    # Functions of `jax.numpy`. Where they have no argument, one of the same shape is added.
    r"average": lambda x, weights: jnp.average(x, weights=weights),
    r"delta_0": lambda x: x + jnp.eye(*x.shape, dtype=x.dtype),
    r"einsum_0(?:_alt)?": lambda x: jnp.einsum("...i->...", x),
    r"einsum_2": lambda x, y: jnp.einsum("...ij,jk->...ik", x, y),
    r"einsum_3(?:_alt)?": lambda x, y: jnp.einsum("ij,jk->ik", x, y),
    r"einsum_4": lambda x, y: jnp.einsum("ij,jk->ik", jnp.concatenate((x, x), 1), jnp.concatenate((y, y), 0)),
    r"einsum_multiple_contractions": lambda x, y, z: jnp.einsum("ab,bc,cd->ad", x, y, z),
    r"eye_N_poly_M_None": lambda x: jnp.eye(len(x), dtype=jnp.float64) + x,
    r"full": lambda x: jnp.full((len(x), 2), 3.0) + x,
    r"getitem_op_poly_idx_dim": lambda x: x[len(x) - 2],
    r"getitem_op_(?:poly|static)_idx_poly": lambda x, at: x[at],
    r"index_in_dim_idx_(?:last|neg)": lambda x: x[-1],
    r"iota": lambda x: x + jnp.arange(len(x), dtype=x.dtype),
    r"mean": lambda x, where: jnp.mean(x, where=where),
    r"nanquantile": lambda x: jnp.nanquantile(x, 0.5),
    r"ones": lambda x: jnp.ones_like(x) + x,
    r"slice_in_dim_limit_neg": lambda x: x[:-1],
    r"slice_in_dim_stride_2_odd": lambda x: x[::2],
    r"squeeze_axis_empty": jnp.squeeze,
    r"take": lambda x, at: jnp.take(x, at, 1),
    r"take_along": lambda x, at: jnp.take_along_axis(x, at, 1),
    r"tri_N_poly_M_None": lambda x: jnp.tri(len(x), dtype=x.dtype) + x,
}
"""Functions by a pattern for the whole name, whose groups are further arguments."""
