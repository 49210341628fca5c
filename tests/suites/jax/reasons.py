"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (
        r"found in 'HloModule|minibatch.*_unreduced_.* 0 != 1",
        "Reads in XLA's text of a compiled program how XLA has divided it",
    ),
    (
        r"getitem_compile_multi_device_sharding",
        "XLA's partitioner divides the result otherwise: shardings are not followed through ops that mix dimensions",
    ),
    (
        r"unreduced_einsum",
        "Expects the terms of an unreduced result to be the devices' own products: here the first device has the sum",
    ),
)
