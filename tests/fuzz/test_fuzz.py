"""A short campaign: `python -m tests.fuzz` runs longer ones. Every input is a program, or is refused with one of our
errors and a position, within the time limit."""

import pytest

from tests.fuzz.campaign import KINDS, judge_all

INPUTS = 1500


@pytest.mark.parametrize("name", KINDS)
def test_mutations(name):
    tally = judge_all(KINDS[name], seed=0, indices=range(INPUTS))
    assert not tally.found, "\n".join(f"{name}:{found.index}: {found.key}" for found in tally.found.values())
    assert tally.outcomes["refused"] > INPUTS // 2
    assert tally.outcomes["evaluated"] > INPUTS // 50
