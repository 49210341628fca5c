"""The tests that count are the same, whether JAX's CPU platform is asked about all of them or only about some."""

from tests.suites.jax.comparison import CPU, compare_all, compare_failing
from tests.suites.runs import Choice, Outcome, Record

TESTS = {
    "good": ("passed", "passed", "passed"),
    "wrong here": ("passed", "failed", "failed"),
    "wrong as the CPU": ("passed", "passed", "failed"),
    "marked for the CPU": ("passed", "skipped", "passed"),
    "marked for the CPU and wrong": ("passed", "skipped", "failed"),
    "skips itself here": ("passed", "skipped", "skipped"),
    "for the CPU only": ("passed", "", "passed"),
    "broken": ("failed", "failed", "failed"),
    "for others": ("skipped", "passed", "skipped"),
}
"""What becomes of each on the CPU, here, and here as if on the CPU; nothing where the file does not have it."""


def run(platform: str, choice: Choice, as_cpu: bool) -> Record:
    column = 0 if platform == CPU else 2 if as_cpu else 1
    chosen = list(TESTS) if choice.tests is None else choice.tests
    kinds = {test: TESTS[test][column] for test in chosen}
    return Record(len(TESTS), len(chosen), {test: Outcome(kind, "", 0.0) for test, kind in kinds.items() if kind})


def test_both_count_the_same() -> None:
    everything = compare_all(run, run(CPU, Choice(), False))
    failing = compare_failing(run, Choice())
    for comparison in (everything, failing):
        assert {test: outcome.kind for test, outcome in comparison.outcomes.items()} == {
            "good": "passed",
            "wrong here": "failed",
            "wrong as the CPU": "passed",
            "marked for the CPU": "passed",
            "marked for the CPU and wrong": "failed",
            "skips itself here": "skipped",
            "for the CPU only": "passed",
        }
        assert (comparison.collected, comparison.chosen) == (9, 9)
    assert (everything.asked, failing.asked) == (9, 5)


def test_tests_that_were_not_reached_do_not_count() -> None:
    def interrupted(platform: str, choice: Choice, as_cpu: bool) -> Record:
        return run(platform, Choice(tests=["good"]), as_cpu)

    comparison = compare_all(interrupted, run(CPU, Choice(), False))
    assert list(comparison.outcomes) == ["good"]
    assert comparison.chosen == 3
