"""One pytest test for each of ONNX's backend tests, on the runtime that `TRIVIUM_SUITE_ON` names: what
`tests.suites.runs` runs, in a process that may die."""

import os

import pytest

from tests.suites.onnx.cases import EQUAL, RUNTIMES, cases, judge


@pytest.mark.parametrize("name", cases())
def test_backend(name: str) -> None:
    verdict = judge(cases()[name], RUNTIMES[os.environ["TRIVIUM_SUITE_ON"]])
    if verdict.kind != EQUAL:
        pytest.fail(f"{verdict.kind}: {verdict.reason}", pytrace=False)
