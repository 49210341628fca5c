"""File tests of the graph passes (see `tests.file_cases`): each case is a small program and the result of the pass.

A file's first line names the pass: `// RUN: canonicalize`. The programs before and after must also compute the same
results, bit for bit, on random inputs.
"""

from pathlib import Path

import pytest

from tests.compiler.passes.inputs import random_inputs
from tests.file_cases import FileCase, file_cases
from trivium.compiler.passes.byte_products import ByteProducts
from trivium.compiler.passes.canonicalize import Canonicalize
from trivium.compiler.passes.cse import CommonSubexpressions
from trivium.compiler.passes.dce import DeadCode
from trivium.compiler.passes.few_channels import FewChannels
from trivium.compiler.passes.first_places import FirstPlaces
from trivium.compiler.passes.fold import FoldConstants
from trivium.compiler.passes.hoist import HoistInvariants
from trivium.compiler.passes.inline import Inline
from trivium.compiler.passes.kernels import TurnedKernels
from trivium.compiler.passes.layout import ChannelsLast
from trivium.compiler.passes.manager import run_passes
from trivium.compiler.passes.padding import ExplicitPadding
from trivium.compiler.passes.skipped_rows import SkipRows
from trivium.compiler.passes.split_batches import SplitBatches
from trivium.compiler.passes.tokens import EraseTokens
from trivium.compiler.passes.weight_gradients import WeightGradients
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

PASSES = {
    step.NAME: step
    for step in (
        ByteProducts(),
        Canonicalize(),
        ChannelsLast(),
        CommonSubexpressions(),
        DeadCode(),
        EraseTokens(),
        ExplicitPadding(),
        FirstPlaces(),
        FewChannels(vector_bytes=16),
        HoistInvariants(),
        FoldConstants(),
        Inline(),
        SkipRows(),
        SplitBatches(),
        TurnedKernels(),
        WeightGradients(vector_bytes=16),
    )
}


@pytest.mark.parametrize("case", list(file_cases(Path(__file__).parent / "cases")))
def test_case(case: FileCase) -> None:
    before = parse(case.program())
    after = run_passes(before.clone(), (PASSES[case.option("RUN")],), verify=True)
    case.expect(str(after))
    for inputs in random_inputs(before.main, count=3):
        for one, other in zip(evaluate(before, *inputs), evaluate(after, *inputs), strict=True):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
