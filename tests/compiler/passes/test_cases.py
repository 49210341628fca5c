"""File tests of the graph passes: each case is a small program and, in the `//=` lines below it, what the pass makes
of it.

A file's first line names the pass, `// RUN: canonicalize`; cases are separated by `// -----`. The program before and
after must also compute the same, bit for bit, on random inputs. `TRIVIUM_REWRITE=1 pytest` writes what the pass makes
into the files.
"""

import os
from pathlib import Path

import pytest

from tests.compiler.passes.inputs import random_inputs
from trivium.compiler.passes.canonicalize import Canonicalize
from trivium.compiler.passes.cse import CommonSubexpressions
from trivium.compiler.passes.dce import DeadCode
from trivium.compiler.passes.fold import FoldConstants
from trivium.compiler.passes.inline import Inline
from trivium.compiler.passes.manager import run_passes
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

PASSES = {step.NAME: step for step in (Canonicalize(), CommonSubexpressions(), DeadCode(), FoldConstants(), Inline())}
FOLDER = Path(__file__).parent / "cases"
SEPARATOR = "\n// -----\n"


def cases():
    for path in sorted(FOLDER.glob("*.mlir")):
        for index, text in enumerate(path.read_text().split(SEPARATOR)):
            name = next((line.removeprefix("// ") for line in text.splitlines() if line.startswith("// ")), "")
            yield pytest.param(path, index, id=f"{path.stem}-{index}-{name[:40].replace(' ', '_')}")


@pytest.mark.parametrize(("path", "index"), list(cases()))
def test_case(path, index):
    whole = path.read_text().split(SEPARATOR)
    step = PASSES[whole[0].splitlines()[0].removeprefix("// RUN: ")]
    lines = whole[index].rstrip("\n").splitlines()
    before = parse("\n".join(line for line in lines if not line.startswith("//")))
    after = run_passes(before.clone(), (step,), verify=True)
    expected = "\n".join(line[3:].strip("\n") for line in lines if line.startswith("//="))
    made = "\n".join(line.rstrip() for line in str(after).splitlines())
    if os.environ.get("TRIVIUM_REWRITE"):
        kept = [line for line in lines if not line.startswith("//=")]
        whole[index] = "\n".join([*kept, *(f"//={line}" for line in made.splitlines())])
        path.write_text(SEPARATOR.join(text.rstrip("\n") for text in whole) + "\n")
    else:
        assert made == expected
    for inputs in random_inputs(before.main, count=3):
        for one, other in zip(evaluate(before, *inputs), evaluate(after, *inputs), strict=True):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
