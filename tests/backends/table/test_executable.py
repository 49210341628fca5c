"""Programs that a plugin compiles compute the interpreter's results."""

import numpy as np
import pytest

import trivium
from tests.backends.table.programs import ADD, X
from tests.compiler.lowering.coverage import COMPILED, expect_equal
from tests.ir.ops.records import Record


def test_compile() -> None:
    run = trivium.compile(ADD, device="trivium")
    np.testing.assert_array_equal(run(X)[0], (X + X).T)
    assert run.memory_analysis().argument_size_in_bytes == 24
    assert run.cost_analysis()["flops"] == 6
    with pytest.raises(trivium.Error, match="does not show its stages"):
        run.stage("graph")


@pytest.mark.parametrize("arguments", [(), (X, X), (X.T,), (X.astype(np.int32),)])
def test_wrong_arguments(arguments: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(trivium.Error, match="main"):
        trivium.compile(ADD, device="trivium")(*arguments)


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED[::16]])
def test_records(record: Record) -> None:
    """Run through the table, each computes the interpreter's results: a sample of `python -m tests.suites.pjrt`."""
    results = trivium.compile(record.module(), device="trivium")(*record.arrays)
    expect_equal(record, record.module(), results)
