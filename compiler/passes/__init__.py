"""Graph passes: each is a frozen dataclass that changes a module; a pipeline is a tuple of them
(`trivium.compiler.pipeline`)."""
