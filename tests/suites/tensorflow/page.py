"""The page of TensorFlow's ops: written from the results, never by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tests.suites.tensorflow.checks import EQUAL, EXACT, REFUSED, WRONG
from tests.suites.tensorflow.exact import SLACK
from tests.suites.tensorflow.ops import BOOKKEEPING, registered
from trivium.importers.tensorflow.context import rule

KINDS = (EQUAL, EXACT, REFUSED, WRONG)

Results = Mapping[str, Mapping[str, Any]]

OPENING = """# TensorFlow's ops

What `python -m tests.suites.tensorflow` found, with TensorFlow {version}. Its XLA registers {count} ops for the CPU, of
which {rules} have a rule here, and {bookkeeping} are bookkeeping between devices or of its runtime. The others run in
TensorFlow, between the parts that Trivium compiles. This page is generated.

Ops with a rule are called with random arguments and attributes that TensorFlow's own kernels accept: of each, how many
results are *equal* (within a tolerance for floats: 2e-4 of f32, 1e-7 of f64, 2e-2 of f16 and bf16, relative or
absolute), how many calls are *refused* with an error, how many are *wrong*. A third of the calls have special numbers:
zeros, infinities, NaN, 1e-30, 3e38. Where TensorFlow's kernels are the less exact ones, results are *exact*: they
differ from TensorFlow's, but special functions are equal to those of SciPy or mpmath within the same tolerance, and
results for matrices to those of NumPy in float64 within {slack} times what a change of the arguments' last digits
causes. Nothing is defined, and any result counts as exact, where TensorFlow's differs for matrices that are singular or
have elements that are not finite, and for polygamma functions whose order is 2^53 or more.

Ops that are not in the table have inputs that are not drawn (lists, functions, optional values, random generators), or
had none that TensorFlow accepted. Decompositions of matrices (such as Svd), whose results are determined up to signs,
are called in the cases of the importer's tests, which compare what is determined.
"""


def page(results: Results) -> str:
    """The page, in Markdown."""
    ops = registered()
    opening = OPENING.format(
        version=tf.__version__,
        count=len(ops),
        rules=sum(op in rule for op in ops),
        bookkeeping=len(BOOKKEEPING & set(ops)),
        slack=SLACK,
    )
    lines = [opening, *_summary(results), *_not_reached(results, ops), "", *_table(results), "", *_missing(ops)]
    return "\n".join(lines) + "\n"


def _summary(results: Results) -> Iterator[str]:
    checked = [result["counts"] for result in results.values() if _total(result)]
    yield f"- {len(checked)} ops were called {sum(_total({'counts': x}) for x in checked)} times."
    for kind in KINDS:
        calls, ops = sum(x.get(kind, 0) for x in checked), sum(kind in x for x in checked)
        yield f"- {kind}: {calls} calls, of {ops} ops."


def _not_reached(results: Results, ops: Mapping[str, Any]) -> Iterator[str]:
    count = sum(op in rule and op not in results for op in ops)
    if count:
        yield f"- The run did not reach {count} ops that have a rule."


def _table(results: Results) -> Iterator[str]:
    yield "| op | equal | exact | refused | wrong | a reason |"
    yield "|---|---:|---:|---:|---:|---|"
    for op, result in sorted(results.items()):
        if _total(result):
            counts = " | ".join(str(result["counts"].get(kind, 0)) for kind in KINDS)
            reason = result["reasons"].get(WRONG) or result["reasons"].get(REFUSED) or ""
            yield f"| {op} | {counts} | {f'`{_plain(reason)}`' if reason else ''} |"


def _missing(ops: Mapping[str, Any]) -> Iterator[str]:
    missing = sorted(op for op in ops if op not in rule and op not in BOOKKEEPING)
    yield f"## Without a rule ({len(missing)})\n"
    yield ", ".join(f"`{op}`" for op in missing) + "." if missing else "None."


def _total(result: Mapping[str, Any]) -> int:
    return sum(result["counts"].get(kind, 0) for kind in KINDS)


def _plain(line: str) -> str:
    """A line fit to stand between backquotes in a table."""
    return line.replace("`", "'").replace("|", "/")[:160]
