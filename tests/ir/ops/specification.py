"""The ops of the StableHLO specification (1.20), and the number of constraints that each has: C1, C2, and so on."""

from __future__ import annotations

_BY_COUNT = {
    0: """
        after_all custom_call outfeed partition_id replica_id
    """,
    1: """
        and async_done atan2 cbrt ceil constant convert cosine count_leading_zeros divide exponential
        exponential_minus_one floor get_dimension_size iota is_finite log log_plus_one logistic maximum minimum
        multiply negate not optimization_barrier or popcnt power remainder round_nearest_afz round_nearest_even
        rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh tuple xor
    """,
    2: """
        abs bitcast_convert dynamic_iota get_tuple_element imag real rng_bit_generator select uniform_dequantize
        uniform_quantize
    """,
    3: """
        cholesky compare complex if infeed reduce_precision reshape reverse rng while
    """,
    4: """
        async_start case clamp collective_reduce composite dynamic_pad dynamic_reshape map pad transpose
        triangular_solve
    """,
    5: """
        batch_norm_grad collective_permute dynamic_slice fft recv send slice sort
    """,
    6: """
        all_gather broadcast_in_dim collective_broadcast concatenate dynamic_update_slice
    """,
    7: """
        add all_reduce batch_norm_inference batch_norm_training
    """,
    8: """
        reduce
    """,
    9: """
        all_to_all reduce_scatter
    """,
    10: """
        dynamic_broadcast_in_dim
    """,
    12: """
        select_and_scatter
    """,
    14: """
        dynamic_gather
    """,
    16: """
        reduce_window
    """,
    23: """
        gather
    """,
    24: """
        dot_general
    """,
    25: """
        scatter
    """,
    34: """
        convolution dynamic_conv
    """,
}

CONSTRAINTS = {name: count for count, names in _BY_COUNT.items() for name in names.split()}
