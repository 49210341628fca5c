"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = (
    (
        r"test_effects_hlo|dce_sink",
        "Reads the ops of a compiled program in XLA's text, which has only its arguments and results here",
    ),
    (r"test_cpp_layout_cache_miss", "Programs of several devices have row-major arguments and results"),
    (r"LayoutTest.* Tuples differ", "XLA chooses the layout of a transposed result where the host lets it choose"),
    (r"testViewScalar", "A boolean whose byte is neither 0 nor 1 is converted to 1, where XLA converts its byte"),
    (
        r"found in 'HloModule|minibatch.*_unreduced_.* 0 != 1",
        "Reads in XLA's text of a compiled program how XLA has divided it",
    ),
    (
        r"partial_auto_propagate_through",
        "XLA follows shardings into a manual computation, along the axes that are not its own",
    ),
    (
        r"test_jit_lower_compile_with_compiler_options_invalid",
        "XLA's options have no effect, and their values are not checked",
    ),
    (
        r"test_print_token_buffer_error",
        "A token is an array without elements, as JAX's lowering makes it, and can be printed",
    ),
)
