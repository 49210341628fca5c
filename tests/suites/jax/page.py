"""The page of what JAX's own tests say: written from the results, never by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.suites.jax.reasons import REASONS

Results = Mapping[str, Mapping[str, Any]]
"""By file and mode, as `tests.suites.jax` stores them."""

OPENING = """# JAX's own tests

What `python -m tests.suites.jax` found, with JAX {version}: its tests at the tag of that version, with
`JAX_PLATFORMS=trivium` and as many devices as a file asks for of JAX's CPU platform. Only tests that pass on that
platform are counted, since the others ask for what no CPU has, or for what is broken. This page is generated; it lists
every failing test.

- *tests*: in the file, with `JAX_NUM_GENERATED_CASES` of {cases} and `JAX_SKIP_SLOW_TESTS`.
- *run*: of these, those that were run: all, a sample (share and seed: {samples}), or as many
  as the time for a file allowed.
- *asked*: of these, those that ran on JAX's CPU platform too: all, or only those that do not pass here.
- *CPU*: of those that were run, those that pass on JAX's CPU platform. What it was not asked about
  counts as passing there.
- *Trivium*: of these, those that pass here.
- *skipped*: those that skip themselves here. Tests that are marked for JAX's own platforms only, or that have their
  expected numbers in a table by platform, are run nevertheless, as if this were its CPU platform.
- *share*: Trivium / CPU; and in brackets Trivium / (CPU - skipped).
"""


@dataclass(frozen=True)
class Failure:
    """A test that passes on the CPU and not here."""

    test: str
    mode: str
    kind: str
    line: str

    @property
    def reason(self) -> str:
        """What is known of its cause."""
        return next((reason for pattern, reason in REASONS if re.search(pattern, f"{self.test} {self.line}")), OTHER)


COLUMNS = ("collected", "chosen", "asked", "cpu", "passed", "skipped")

OTHER = "Not explained yet"


def page(results: Results) -> str:
    """The page, in Markdown."""
    import jax

    samples = {(result["share"], result["seed"]) for result in results.values()}
    opening = OPENING.format(
        version=jax.__version__,
        cases=", ".join(sorted({str(result["cases"]) for result in results.values()})),
        samples=", ".join(f"{share:g} and {seed}" for share, seed in sorted(samples)),
    )
    return "\n".join([opening, *_table(results), "", *_failures(results), "", *_skips(results)]) + "\n"


def _table(results: Results) -> Iterator[str]:
    yield "| file | mode | tests | run | asked | CPU | Trivium | skipped | share |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    total = Counter[str]()
    for key, result in sorted(results.items()):
        file, mode = key.split()
        counts = Counter(kind for kind, *_ in result["outcomes"].values())
        row = {name: result[name] for name in ("collected", "chosen", "asked")}
        row |= {"cpu": len(result["outcomes"]), "passed": counts["passed"], "skipped": counts["skipped"]}
        total.update(row)
        yield _row(file, mode, row)
    yield _row("all", "", total)


def _row(file: str, mode: str, row: Mapping[str, int]) -> str:
    numbers = " | ".join(str(row[name]) for name in COLUMNS)
    shares = f"{_share(row['passed'], row['cpu'])} ({_share(row['passed'], row['cpu'] - row['skipped'])})"
    return f"| {file} | {mode} | {numbers} | {shares} |"


def _share(part: int, whole: int) -> str:
    # Rounded down: what is not whole is not 100 %.
    return f"{int(1000 * part / whole) / 10:.1f} %" if whole else "-"


def failures(results: Results) -> list[Failure]:
    """All that pass on the CPU and neither pass here nor are skipped."""
    return [
        Failure(test, key.split()[1], kind, line)
        for key, result in sorted(results.items())
        for test, (kind, line, _) in result["outcomes"].items()
        if kind not in ("passed", "skipped")
    ]


def _failures(results: Results) -> Iterator[str]:
    groups: dict[str, list[Failure]] = {}
    for failure in failures(results):
        groups.setdefault(failure.reason, []).append(failure)
    yield "## What fails, by its reason"
    for reason, group in sorted(groups.items(), key=lambda item: (item[0] == OTHER, -len(item[1]))):
        yield f"\n### {reason} ({len(group)})\n"
        for failure in group:
            name = failure.test.removeprefix("tests/").replace("::", " ")
            yield f"- `{name}` ({failure.mode}, {failure.kind}): `{_plain(failure.line)}`"


def _skips(results: Results) -> Iterator[str]:
    yield "## What JAX skips here, and not on its CPU platform\n"
    counts: Counter[str] = Counter()
    for result in results.values():
        counts.update(line for kind, line, _ in result["outcomes"].values() if kind == "skipped")
    if not counts:
        yield "Nothing."
    for line, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"- {count}: `{_plain(line)}`"


def _plain(line: str) -> str:
    """A line without what differs from run to run, fit to stand between backquotes."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", line).replace("`", "'")[:200]
