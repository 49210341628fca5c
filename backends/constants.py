"""The bytes of an artifact's constants: those that it embeds, and those that it takes from its module."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trivium.compiler.artifact import ConstantData, Embedded, ModuleConstant
from trivium.ir.errors import CompileError


def source_of(constant: ConstantData, module: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Returns the bytes of a constant, before it is packed. `module` contains the constants of the module that the
    artifact `name` was made from, in order."""
    match constant.source:
        case Embedded(data):
            return data.reshape(-1).view(np.uint8)
        case ModuleConstant() as reference:
            return _referred(reference, module, name)


def _referred(reference: ModuleConstant, module: Sequence[np.ndarray], name: str) -> np.ndarray:
    end = reference.offset + reference.nbytes
    if reference.index >= len(module) or module[reference.index].nbytes < end:
        raise CompileError(
            f"{name} was made of another module: constant {reference.index} of this one, of {len(module)}, "
            f"has not {end} bytes"
        )
    return np.ascontiguousarray(module[reference.index]).reshape(-1).view(np.uint8)[reference.offset : end]
