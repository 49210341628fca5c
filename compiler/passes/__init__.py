"""Graph passes: module in, module out, each a frozen dataclass; a pipeline is a tuple of them
(`trivium.compiler.pipeline`)."""
