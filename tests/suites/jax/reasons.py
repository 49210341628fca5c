"""What is known of the causes of failing tests: patterns that are searched in `<test> <first line of the error>`, the
first that matches counts."""

REASONS: tuple[tuple[str, str], ...] = ()
