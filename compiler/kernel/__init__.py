"""The kernel level: small SSA loop programs over buffers, between the graph and machine code (see `structure`)."""

from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop, Subscript
from trivium.compiler.kernel.contraction_nest import contraction_kernel
from trivium.compiler.kernel.dtypes import DType, bit_width, from_numpy, numpy_dtype, storage_bytes
from trivium.compiler.kernel.index import Index, expression
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.sharing import may_share
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    Position,
    Register,
    Scratch,
    SortKeys,
    Store,
    Target,
    Update,
    While,
    row_major,
    walk,
)

__all__ = [
    "Access",
    "Apply",
    "Block",
    "Buffer",
    "Constant",
    "Contraction",
    "ContractionLoop",
    "DType",
    "If",
    "Index",
    "Instruction",
    "Kernel",
    "KernelBuilder",
    "Load",
    "Loop",
    "Position",
    "Register",
    "Scratch",
    "SortKeys",
    "Store",
    "Subscript",
    "Target",
    "Update",
    "While",
    "bit_width",
    "contraction_kernel",
    "expression",
    "from_numpy",
    "may_share",
    "numpy_dtype",
    "row_major",
    "storage_bytes",
    "walk",
]
