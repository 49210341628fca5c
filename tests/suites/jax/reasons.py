"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (r"testViewScalar", "A boolean whose byte is neither 0 nor 1 is converted to 1; XLA converts its byte"),
    (
        r"found in 'HloModule|minibatch.*_unreduced_.* 0 != 1",
        "Expects exchanges in the HLO text: outside of `shard_map`, Trivium computes on wholes what needs them",
    ),
    (
        r"partial_auto_propagate_through",
        "XLA propagates shardings into a manual computation, along axes that are not manual",
    ),
    (
        r"platform_dependent_with_non_existent",
        "Trivium is not JAX's CPU platform: it takes the branch for all other platforms, if there is one",
    ),
    (
        r"test_print_token_buffer_error",
        "A token is an empty array, as in JAX's lowering, and can be printed",
    ),
)
