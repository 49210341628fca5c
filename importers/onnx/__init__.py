"""From an ONNX model to a module. `import_module` is the entry point; the rules are filed by family, one module
each."""

from trivium.importers.onnx import (
    boxes,
    cast,
    classical,
    contraction,
    control,
    earlier,
    einsum,
    elementwise,
    features,
    indexing,
    linear_models,
    microsoft,
    microsoft_attention,
    microsoft_quantized,
    normalization,
    pooling,
    quantization,
    randomness,
    recurrent,
    reduction,
    resize,
    sampling,
    selection,
    sequences,
    shape,
    signal,
    slicing,
    statistics,
    support_vectors,
    trees,
)
from trivium.importers.onnx.module import import_module

__all__ = ["import_module"]

# Imported for the rules that they register.
_FAMILIES = (
    boxes, cast, classical, contraction, control, earlier, einsum, elementwise, features, indexing, linear_models,
    microsoft, microsoft_attention, microsoft_quantized, normalization, pooling, quantization, randomness, recurrent,
    reduction, resize, sampling, selection, sequences, shape, signal, slicing, statistics, support_vectors, trees,
)  # fmt: skip
