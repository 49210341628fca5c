"""StableHLO's own test programs, from the conformance vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.ir import checks as _  # noqa: F401  (declares the ops of the test dialects)

FOLDERS = ("testdata", "testdata/quantized", "testdata/dynamic")
TWO_STRIDES = "dynamic_conv has two window strides for one spatial dimension, [C2]; MLIR does not look"
UNVERIFIED = {
    "conv_general_dilated_1d_stride_2_even_dynamic": TWO_STRIDES,
    "conv_general_dilated_1d_stride_2_odd_dynamic": TWO_STRIDES,
}
"""Programs that break a constraint, and the constraint that each breaks."""


def texts(conformance: Path, folder: str, every: int = 1) -> Iterator[tuple[str, str]]:
    """Yields the name and text of every `every`th file's programs; a file may contain several."""
    for path in sorted((conformance / "stablehlo" / folder).glob("*.mlir"))[::every]:
        for text in re.split(r"^// -----$", path.read_text(), flags=re.MULTILINE):
            if "func.func" in text:
                yield path.stem, text
