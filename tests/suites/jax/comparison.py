"""Which tests of a file count, and what becomes of them here: those that pass on JAX's CPU platform. It is asked about
all of them, or, in half the time, only about those that do not pass here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.suites.runs import Choice, Outcome, Record

HERE, CPU = "trivium", "cpu"

Run = Callable[[str, Choice, bool], Record]
"""Runs the chosen tests of a file on a platform; on Trivium, if asked to, as if that were the CPU platform."""


@dataclass(frozen=True)
class Comparison:
    """`collected`: tests in the file; `chosen`: those that were run; `asked`: of these, those that the CPU platform ran
    too; `outcomes`: what became here of those that pass on the CPU."""

    collected: int
    chosen: int
    asked: int
    outcomes: Mapping[str, Outcome]


def compare_all(run: Run, expected: Record) -> Comparison:
    """Runs here what passes on the CPU, as `expected` tells."""
    passed = [test for test, outcome in expected.outcomes.items() if passes(outcome)]
    found = run_here(run, passed)
    # Time may have ended before some were reached: they are not counted.
    chosen = len(expected.outcomes) - len(passed) + len(found)
    return Comparison(expected.collected, chosen, chosen, found)


def compare_failing(run: Run, choice: Choice) -> Comparison:
    """Runs tests here, as if on the CPU, so that the same ones skip themselves; on the CPU only those that do not pass
    here in any way. So a test that only passes here counts as one that passes on both. One that fails as if on the CPU
    fails, even if it is not for this platform."""
    here = run(HERE, choice, True)
    found = here.outcomes
    if failing := [test for test, outcome in found.items() if outcome.kind not in ("passed", "skipped")]:
        again = run(HERE, Choice(tests=failing), False).outcomes
        found |= {test: outcome for test, outcome in again.items() if outcome.kind != "skipped"}
    asked = [test for test, outcome in found.items() if not passes(outcome)]
    there = run(CPU, Choice(tests=asked), False).outcomes if asked else {}
    counted = {test: outcome for test, outcome in found.items() if test not in asked or passes(there.get(test))}
    return Comparison(here.collected, len(found), len(asked), counted)


def run_here(run: Run, tests: Sequence[str]) -> dict[str, Outcome]:
    """Runs tests here; those that are not for this platform, or that a file does not have for it, as if on the CPU."""
    found = run(HERE, Choice(tests=tests), False).outcomes
    if refused := [test for test in tests if test not in found or _is_for_known_platforms(found[test])]:
        found |= run(HERE, Choice(tests=refused), True).outcomes
    return found


def passes(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.kind == "passed"


def _is_for_known_platforms(outcome: Outcome) -> bool:
    """Whether a test did not run because it is marked for other platforms, or has its expected numbers in a table by
    platform."""
    return outcome.kind == "skipped" or outcome.reason == "KeyError: 'trivium'"
