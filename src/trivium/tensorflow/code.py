"""Programs of a TensorFlow function, as functions of tensors or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from trivium.backends import native
from trivium.backends.ranged import RangedProgram
from trivium.backends.ranges import Sizes
from trivium.executable import Executable
from trivium.importers.tensorflow.types import empty, to_array
from trivium.ir.types import TensorType
from trivium.tensorflow.rows import Rows


@dataclass(frozen=True)
class RangedCode:
    """A program for several combinations of sizes, of which operands have one. All rows of its results exist."""

    program: RangedProgram
    sizes: Sizes
    rows: Rows

    def run(self, operands: Sequence[tf.Tensor | np.ndarray]) -> list[np.ndarray]:
        """Runs on tensors or arrays."""
        return self.program.execute(list(map(to_array, operands)), self.sizes)

    run_at = run


@dataclass(frozen=True)
class Code:
    """A program for operands of certain sizes, the types of its results, and which rows of them exist."""

    executable: Executable
    types: list[TensorType]
    rows: Rows

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs on arrays."""
        return list(self.executable(*arrays))

    def run_at(self, tensors: Sequence[tf.Tensor | np.ndarray]) -> list[np.ndarray]:
        """Runs on the memory of tensors."""
        results = [empty(kind) for kind in self.types]
        self.executable.loaded.execute_at(native.addresses([*tensors, *results]))
        return results
