"""From an ONNX model to a module. `import_module` is the entry point; the rules are filed by family, one module
each."""

from trivium.importers.onnx import (
    cast,
    contraction,
    control,
    earlier,
    einsum,
    elementwise,
    indexing,
    normalization,
    quantization,
    recurrent,
    reduction,
    resize,
    sampling,
    sequences,
    shape,
    slicing,
    statistics,
)
from trivium.importers.onnx.module import import_module

__all__ = ["import_module"]

# Imported for the rules that they register.
_FAMILIES = (
    cast, contraction, control, earlier, einsum, elementwise, indexing, normalization, quantization, recurrent,
    reduction, resize, sampling, sequences, shape, slicing, statistics,
)  # fmt: skip
