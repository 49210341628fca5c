"""The page of what PyTorch's op database says: written from the results, never by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.suites.torch.comparison import KINDS

Results = Mapping[str, Mapping[str, Any]]
"""By kind of table, as `tests.suites.torch` stores them."""

OPENING = """# PyTorch's op database

What `python -m tests.suites.torch` found, with PyTorch {version}: each op of
`torch.testing._internal.common_methods_invocations.op_db` at {samples} of its own sample inputs, through
`torch.compile(backend="trivium", fullgraph=True, options={{"fallback": False}})`, against PyTorch without a compiler.
An op is *equal* if all samples are: integers exactly, floats to rounding errors, or about as near as PyTorch's own to
the results in double precision; random results in types and shapes. What PyTorch's capture (`backend="aot_eager"`)
cannot make one graph of does not count. This page is generated.

- *refused*: Trivium names the op that has no rule, or the argument; without `"fallback": False` such an op runs in
  PyTorch, between compiled parts.
- *wrong*: a result differs.
- *failed*: any other error.
"""

CLASSES = ("equal", "refused", "wrong", "failed", "not captured")


def page(results: Results) -> str:
    """The page, in Markdown."""
    import torch

    samples = ", ".join(sorted({str(result["samples"]) for result in results.values()}))
    opening = OPENING.format(version=torch.__version__, samples=samples)
    return "\n".join([opening, *_table(results), "", *_runs(results), *_missing(results), "", *_others(results)]) + "\n"


def classify(kind: str, reason: str) -> str:
    """Returns the column that an outcome counts in."""
    if kind == "passed":
        return "equal"
    if kind == "skipped":
        return "not captured"
    if kind == "failed" and ".Refused:" in reason:
        return "refused"
    return "wrong" if ".Wrong:" in reason else "failed"


def _table(results: Results) -> Iterator[str]:
    yield "| table | ops | captured | " + " | ".join(CLASSES[:-1]) + " | share |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for table, result in results.items():
        counts = Counter(classify(kind, reason) for kind, reason, _ in result["outcomes"].values())
        captured = sum(counts.values()) - counts["not captured"]
        numbers = " | ".join(str(counts[name]) for name in CLASSES[:-1])
        # Rounded down: what is not whole is not 100 %.
        share = f"{int(1000 * counts['equal'] / captured) / 10:.1f} %" if captured else "-"
        count, whole = sum(counts.values()), result["collected"]
        ops = count if count == whole else f"{count} of {whole}"
        yield f"| {table} | {ops} | {captured} | {numbers} | {share} |"


def _runs(results: Results) -> Iterator[str]:
    """What was called in another run than the rest of its table, or not at all."""
    again = {table: result["again"] for table, result in results.items() if result.get("again")}
    if any(len(result["outcomes"]) < result["collected"] for result in results.values()):
        yield "A table of fewer ops than there are is a seeded sample of them, as far as its time went.\n"
    if missing := [kind for kind in KINDS if kind not in results]:
        yield f"Not run: {', '.join(missing)}.\n"
    if again:
        yield "Each table is of one run, after which these ops were called again:\n"
        yield from (f"- {table}: {', '.join(names)}" for table, names in again.items())
        yield ""


def _missing(results: Results) -> Iterator[str]:
    """The aten ops that make most of the refusals, with the ops of the database that need them."""
    needed: dict[str, dict[str, None]] = {}
    for result in results.values():
        for name, (kind, reason, _) in result["outcomes"].items():
            if classify(kind, reason) == "refused":
                for missing in _message(reason).split("; "):
                    needed.setdefault(missing, {})[name] = None
    yield "## What is refused, by what is missing\n"
    for missing, names in sorted(needed.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"- `{_plain(missing)}`: {', '.join(names)}"


def _others(results: Results) -> Iterator[str]:
    for title in ("wrong", "failed"):
        yield f"## What is {title}\n"
        lines = [
            f"- `{name}` ({table}): `{_plain(_message(reason) if kind == 'failed' else reason)}`"
            for table, result in results.items()
            for name, (kind, reason, _) in sorted(result["outcomes"].items())
            if classify(kind, reason) == title
        ]
        yield from lines or ["Nothing."]
        yield ""


def _message(reason: str) -> str:
    return reason.partition(": ")[2]


def _plain(line: str) -> str:
    """A line without what differs from run to run, fit to stand between backquotes."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", line).replace("`", "'")[:200]
