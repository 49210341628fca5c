"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (
        r"was exported for platforms",
        "JAX refuses what was exported for its own platforms only on a platform of another name",
    ),
    (r"unexpectedly found in 'HloModule", "Reads in XLA's text of a compiled program how XLA has divided it"),
    (r"InspectSharding", "`inspect_array_sharding` over several devices asks XLA's partitioner, which is not there"),
    (
        r"'(batch_partitionable|__testing_prim_with_lowering_error)' not found",
        "A primitive of the test's own has rules for JAX's own platforms only",
    ),
    (
        r"prng_key_inp|prng_sharding_propagation",
        "XLA's partitioner divides the result otherwise: shardings are not followed through ops that mix dimensions",
    ),
)
