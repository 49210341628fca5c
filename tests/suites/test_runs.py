"""Each test of a suite gets its outcome, whatever the others do to their process."""

from pathlib import Path

import pytest

from tests.suites.recorder import drawn
from tests.suites.runs import Choice, File, Limits, run

SUITE = """
import os, time, pytest

def test_that_passes(): pass
def test_that_fails(): assert 1 == 2, "sums"
def test_that_is_skipped(): pytest.skip("no such device")
def test_that_crashes(): os.abort()
def test_that_hangs(): time.sleep(1000)
def test_that_raises(): raise ValueError("first line\\nsecond line")
def test_that_comes_last(): pass
"""


@pytest.fixture
def file(tmp_path: Path) -> File:
    (tmp_path / "suite_test.py").write_text(SUITE)
    return File(tmp_path, "suite_test.py", {"ANYTHING": "1"})


def test_outcomes(file: File) -> None:
    record = run(file, Choice(), Limits(test=10, file=100))
    kinds = {test.partition("::test_that_")[2]: outcome.kind for test, outcome in record.outcomes.items()}
    assert kinds == {
        "passes": "passed",
        "fails": "failed",
        "is_skipped": "skipped",
        "crashes": "crashed",
        "hangs": "hung",
        "raises": "failed",
        "comes_last": "passed",
    }
    reasons = [outcome.reason for outcome in record.outcomes.values()]
    assert reasons[1].startswith("AssertionError: sums")
    assert reasons[2] == "no such device"
    assert "SIGABRT" in reasons[3]
    assert reasons[5] == "ValueError: first line"
    assert (record.collected, record.chosen) == (7, 7)


def test_only_the_tests_that_are_named(file: File) -> None:
    record = run(file, Choice(tests=["suite_test.py::test_that_passes"]), Limits(test=30, file=100))
    assert list(record.outcomes) == ["suite_test.py::test_that_passes"]
    assert (record.collected, record.chosen) == (7, 1)


def test_a_process_that_does_not_end(tmp_path: Path) -> None:
    """What hangs after the last test costs no outcome."""
    (tmp_path / "suite_test.py").write_text("import atexit, time\ndef test_one(): atexit.register(time.sleep, 1000)\n")
    record = run(File(tmp_path, "suite_test.py", {}), Choice(), Limits(test=5, file=100))
    assert [outcome.kind for outcome in record.outcomes.values()] == ["passed"]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "suite_test.py").write_text("import nothing_of_that_name")
    with pytest.raises(RuntimeError, match="no test began"):
        run(File(tmp_path, "suite_test.py", {}), Choice(), Limits(test=30, file=100))


def test_samples_have_the_requested_size() -> None:
    names = [f"test{i}" for i in range(10000)]
    sample = [name for name in names if drawn(name, 0.25, seed=1)]
    assert 2300 < len(sample) < 2700
    assert sample != [name for name in names if drawn(name, 0.25, seed=2)]
