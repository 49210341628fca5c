"""The pretty forms of StableHLO, CHLO and Shardy, as those dialects define them. Ops that are missing here are
elementwise (`%0 = stablehlo.add %a, %b : tensor<4xf32>`), have the functional form, or, with regions, the generic one.
"""

from __future__ import annotations

from trivium.ir.text import pieces  # noqa: F401  (registers the directives that the lines below name)
from trivium.ir.text.assembly import FORMS, GENERIC
from trivium.ir.text.chlo_forms import ScanForm
from trivium.ir.text.control_forms import BarrierForm, ConstantForm, ReturnForm, WhileForm
from trivium.ir.text.func_forms import CallForm, FunctionForm, ModuleForm
from trivium.ir.text.reduce_form import ReduceForm
from trivium.ir.text.sdy_forms import ManualForm, MeshForm

FORMS |= {
    # Shapes
    "stablehlo.iota": "dim = $iota_dimension : result",
    "stablehlo.dynamic_iota": "$output_shape, dim = $iota_dimension",
    "stablehlo.broadcast": "$operand, sizes = $broadcast_sizes",
    "stablehlo.broadcast_in_dim": "$operand, dims = $broadcast_dimensions",
    "stablehlo.dynamic_broadcast_in_dim": "$operand, $output_dimensions, dims = $broadcast_dimensions",
    "stablehlo.transpose": "$operand, dims = $permutation",
    "stablehlo.reverse": "$operand, dims = $dimensions : same",
    "stablehlo.concatenate": "$inputs, dim = $dimension",
    "stablehlo.pad": (
        "$operand, $padding_value, low = $edge_padding_low, high = $edge_padding_high, interior = $interior_padding"
    ),
    "stablehlo.slice": "$operand <slice-ranges>",
    "stablehlo.dynamic_slice": "$operand, $start_indices, sizes = $slice_sizes",
    "stablehlo.get_dimension_size": "$operand, dim = $dimension",
    "stablehlo.set_dimension_size": "$operand, $size, dim = $dimension",
    # Elements
    "stablehlo.constant": ConstantForm(),
    "stablehlo.compare": "$comparison_direction, $lhs, $rhs(, $compare_type)?",
    "stablehlo.select": "$operands : select",
    "stablehlo.clamp": "$operands : same",
    "stablehlo.complex": "$operands : complex",
    "stablehlo.is_finite": "$operands : functional",
    "stablehlo.reduce_precision": "$operand, format = <exponent-mantissa> : same",
    # Reductions and linear algebra
    "stablehlo.reduce": ReduceForm(),
    "stablehlo.dot": "$lhs, $rhs<precision>",
    "stablehlo.dot_general": "$lhs, $rhs, <dot-dimensions><precision><algorithm>",
    "stablehlo.convolution": "($operands) dim_numbers = <convolution-dimensions>, window = {<window>}",
    "stablehlo.einsum": "$lhs, $rhs, config = $einsum_config",
    "stablehlo.unary_einsum": "$operand, config = $einsum_config",
    "stablehlo.fft": "$operand, type = $fft_type, length = $fft_length",
    "stablehlo.cholesky": "$a(, lower = $lower)? : same",
    # Control, calls, tuples, tokens
    "stablehlo.while": WhileForm(),
    "stablehlo.return": ReturnForm(),
    "stablehlo.optimization_barrier": BarrierForm(),
    "stablehlo.custom_call": "<target>($operands)",
    "stablehlo.composite": "$name $operands",
    "stablehlo.tuple": "$operands : tuple",
    "stablehlo.get_tuple_element": "$operand[$index]",
    "stablehlo.after_all": "$operands : same",
    "stablehlo.create_token": " : result",
    "stablehlo.replica_id": " : result",
    "stablehlo.partition_id": " : result",
    # Random numbers
    "stablehlo.rng": "$a, $b, $shape, distribution = $rng_distribution",
    "stablehlo.rng_bit_generator": "$initial_state, algorithm = $rng_algorithm",
    # CHLO
    "chlo.constant": ConstantForm(),
    "chlo.scan": ScanForm(),
    "chlo.mulhi": "$operands : arrow",
    "chlo.top_k": "($operand, k = $k(, is_stable = $is_stable)?) : arrow",
    # Shardy
    "sdy.mesh": MeshForm(),
    "sdy.sharding_constraint": "$input <sharding> : same",
    "sdy.reshard": "$input <sharding> : same",
    "sdy.sharding_group": "$input group_id=$group_id : operands",
    "sdy.manual_computation": ManualForm(),
    "sdy.return": ReturnForm(in_front=True),
    # Modules and functions
    "builtin.module": ModuleForm(),
    "func.func": FunctionForm(),
    "func.return": ReturnForm(in_front=True),
    "func.call": CallForm(),
}

GENERIC |= {
    *("stablehlo.gather", "stablehlo.dynamic_gather", "stablehlo.dynamic_conv", "stablehlo.triangular_solve"),
    *("stablehlo.batch_norm_grad", "stablehlo.batch_norm_inference", "stablehlo.batch_norm_training"),
    *("stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_broadcast", "stablehlo.collective_permute"),
    *("stablehlo.cross-replica-sum", "stablehlo.torch_index_select", "stablehlo.async_done"),
    *("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"),
    *("chlo.ragged_dot", "chlo.constant_like"),
}
