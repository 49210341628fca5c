"""From an ONNX model to a module. `import_module` is the entry point; the rules are filed by family, one module
each."""

from trivium.importers.onnx import cast, contraction, control, elementwise, indexing, normalization, reduction, shape
from trivium.importers.onnx.graph import import_module

__all__ = ["import_module"]

# Imported for the rules that they register.
_FAMILIES = (cast, contraction, control, elementwise, indexing, normalization, reduction, shape)
