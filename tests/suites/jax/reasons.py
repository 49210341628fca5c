"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (r"testViewScalar", "A boolean whose byte is neither 0 nor 1 is converted to 1; XLA converts its byte"),
    (r"inlineable=", "The HLO text has no calls: Trivium inlines them, whatever their attributes"),
    (
        r"found in 'HloModule|minibatch.*_unreduced_.* 0 != 1",
        "Expects other exchanges in the HLO text: outside of `shard_map`, Trivium computes on wholes what needs them",
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
    (
        r"TransferGuardTest",
        "Trivium's arrays are in the host's memory: NumPy reads them where they are, and nothing is transferred",
    ),
    (
        r"testNumpyToJax",
        "NumPy's arrays are used where they are, which the test expects of JAX's CPU platform only",
    ),
    (
        r"near_singular_inverse",
        "Trivium keeps subnormal numbers, which XLA replaces by 0: a matrix with a row of them is not singular",
    ),
    (
        r"EmitPythonCallback|test_different_threads_get_different_tokens",
        "Rules of the test's own call Python by a function with which JAX serves only the platforms that it knows",
    ),
    (
        r"custom_partitioner_invalid_sharding",
        "A function with partitions of its own is computed on wholes: its partitions, right or wrong, are not called",
    ),
    (
        r"ShardAlikeTest",
        "Arguments, and values in `shard_map` along axes that are not manual, do not follow their sharding group",
    ),
    (
        r"dump_on_cache_hit",
        "XLA's options are accepted and have no effect: `xla_dump_to` writes nothing",
    ),
    (
        r"miss_logging_with_explain",
        "Programs with callbacks are kept in the persistent cache, too; the test expects a message that they are not",
    ),
)
