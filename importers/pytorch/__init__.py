"""The PyTorch importer: exported programs, and the graphs that `torch.compile` hands over. One rule an op, filed by family."""

from trivium.importers.pytorch import (
    activation,
    attention,
    comparison,
    convolution,
    elementwise,
    indexing,
    matmul,
    normalization,
    pooling,
    random,
    reduction,
    rnn,
    shape,
)
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.program import ImportedGraph, ResultIndex, import_graph, import_module

__all__ = ["Context", "ImportedGraph", "ResultIndex", "import_graph", "import_module", "rule"]
