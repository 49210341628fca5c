"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (
        r"test_effects_hlo|dce_sink",
        "Reads ops from the HLO text of a compiled program, which has only arguments and results in Trivium",
    ),
    (r"test_cpp_layout_cache_miss", "Programs for several devices have row-major arguments and results"),
    (
        r"LayoutTest.* Tuples differ",
        "XLA chooses the layout of a transposed result if the host lets it choose; Trivium's is row-major",
    ),
    (r"testViewScalar", "A boolean whose byte is neither 0 nor 1 is converted to 1; XLA converts its byte"),
    (
        r"found in 'HloModule|minibatch.*_unreduced_.* 0 != 1",
        "Reads from the HLO text of a compiled program how XLA has partitioned it",
    ),
    (
        r"partial_auto_propagate_through",
        "XLA propagates shardings into a manual computation, along axes that are not manual",
    ),
    (
        r"test_print_token_buffer_error",
        "A token is an empty array, as in JAX's lowering, and can be printed",
    ),
)
