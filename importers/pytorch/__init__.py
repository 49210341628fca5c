"""The PyTorch importer: exported programs, and the graphs that `torch.compile` passes on. One rule per op, filed by
family."""

from trivium.importers.pytorch import (
    activation,
    attention,
    comparison,
    control,
    convolution,
    counts,
    creation,
    ctc,
    cuda_attention,
    cuda_cells,
    elementwise,
    flexible_attention,
    fourier,
    indexing,
    joining,
    linalg,
    matmul,
    normalization,
    pooling,
    powers,
    prims,
    quantization,
    random,
    reduction,
    rnn,
    rnn_gradient,
    segments,
    selection,
    shape,
    special,
    strided,
    unique,
)
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.cutting import is_cut, refused_nodes, split
from trivium.importers.pytorch.outputs import ImportedGraph, InputIndex, ResultIndex, SizeIndex, ViewIndex
from trivium.importers.pytorch.program import import_file, import_graph, import_module

FAMILIES = (
    *(activation, attention, comparison, control, convolution, counts, creation, ctc),
    *(
        cuda_attention,
        cuda_cells,
        elementwise,
        flexible_attention,
        fourier,
        indexing,
        joining,
        linalg,
        matmul,
        normalization,
        pooling,
        powers,
        prims,
        quantization,
        random,
    ),
    *(reduction, rnn, rnn_gradient, segments, selection, shape, special, strided, unique),
)
"""The modules of rules; importing them fills the table."""

__all__ = [
    "FAMILIES",
    "Context",
    "ImportedGraph",
    "InputIndex",
    "ResultIndex",
    "SizeIndex",
    "ViewIndex",
    "import_file",
    "import_graph",
    "import_module",
    "is_cut",
    "refused_nodes",
    "rule",
    "split",
]
