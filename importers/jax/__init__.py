"""From a jaxpr to a module. `import_module` is the entry point; the rules are filed by family, one module each."""

from trivium.importers.jax import (
    callbacks,
    contraction,
    control,
    elementwise,
    indexing,
    linalg,
    randomness,
    reduction,
    shape,
)
from trivium.importers.jax.graph import import_jaxpr, import_module

__all__ = ["import_jaxpr", "import_module"]

# Imported for the rules that they register.
_FAMILIES = (callbacks, contraction, control, elementwise, indexing, linalg, randomness, reduction, shape)
