"""The page of TensorFlow's ops: written from the results, never by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tests.suites.tensorflow.checks import EQUAL, REFUSED, WRONG
from tests.suites.tensorflow.ops import BOOKKEEPING, registered
from trivium.importers.tensorflow.context import rule

Results = Mapping[str, Mapping[str, Any]]

OPENING = """# TensorFlow's ops

What `python -m tests.suites.tensorflow` found, with TensorFlow {version}. Its XLA registers {count} ops for the CPU, of
which {rules} have a rule here, and {bookkeeping} are bookkeeping between devices or of its runtime. The others run in
TensorFlow, between the parts that Trivium compiles. This page is generated.

Ops with a rule are called with random arguments and attributes that TensorFlow's own kernels accept: of each, how many
results are *equal* (within a tolerance for floats), how many calls are *refused* with an error, how many are *wrong*.
Ops that are not in the table have inputs that are not drawn (lists, functions, optional values, random generators), had
none that TensorFlow accepted, or were not reached by the run.
"""


def page(results: Results) -> str:
    """The page, in Markdown."""
    ops = registered()
    opening = OPENING.format(
        version=tf.__version__,
        count=len(ops),
        rules=sum(op in rule for op in ops),
        bookkeeping=len(BOOKKEEPING & set(ops)),
    )
    lines = [opening, *_summary(results), "", *_table(results), "", *_missing(ops)]
    return "\n".join(lines) + "\n"


def _summary(results: Results) -> Iterator[str]:
    checked = [result["counts"] for result in results.values() if _total(result)]
    yield f"- {len(checked)} ops were called {sum(_total({'counts': x}) for x in checked)} times."
    for kind in (EQUAL, REFUSED, WRONG):
        calls, ops = sum(x.get(kind, 0) for x in checked), sum(kind in x for x in checked)
        yield f"- {kind}: {calls} calls, of {ops} ops."


def _table(results: Results) -> Iterator[str]:
    yield "| op | equal | refused | wrong | a reason |"
    yield "|---|---:|---:|---:|---|"
    for op, result in sorted(results.items()):
        if _total(result):
            counts = " | ".join(str(result["counts"].get(kind, 0)) for kind in (EQUAL, REFUSED, WRONG))
            reason = result["reasons"].get(WRONG) or result["reasons"].get(REFUSED) or ""
            yield f"| {op} | {counts} | {f'`{_plain(reason)}`' if reason else ''} |"


def _missing(ops: Mapping[str, Any]) -> Iterator[str]:
    missing = sorted(op for op in ops if op not in rule and op not in BOOKKEEPING)
    yield f"## Without a rule ({len(missing)})\n"
    yield ", ".join(f"`{op}`" for op in missing) + "." if missing else "None."


def _total(result: Mapping[str, Any]) -> int:
    return sum(result["counts"].get(kind, 0) for kind in (EQUAL, REFUSED, WRONG))


def _plain(line: str) -> str:
    """A line fit to stand between backquotes in a table."""
    return line.replace("`", "'").replace("|", "/")[:160]
