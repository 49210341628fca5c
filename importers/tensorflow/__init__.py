"""TensorFlow's programs as modules: concrete functions and graphs with their libraries of functions, read node by node.
Importing the families registers their rules."""

from trivium.importers.tensorflow import (  # noqa: F401
    bessel,
    boxes,
    calls,
    color,
    contraction,
    convolution,
    crops,
    diagonals,
    elementwise,
    fused,
    image,
    indexing,
    linalg,
    listops,
    morphology,
    nn,
    optimizers,
    pooling,
    programs,
    quantization,
    random,
    reduction,
    sampling,
    scaling,
    selection,
    shape,
    slices,
    sparse,
    sparse_order,
    special,
    stacks,
    state,
    tensor_arrays,
    uniform,
    xla,
    xla_computations,
)
from trivium.importers.tensorflow.source import import_module

__all__ = ["import_module"]
