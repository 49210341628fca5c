"""The ops of TensorFlow's XLA, called with random arguments, by TensorFlow's own kernels and by Trivium:
`python -m tests.suites.tensorflow --page docs/tensorflow.md`. The results are in a file, from which the page is
written; runs with `--only` or `--rest` add to it, others start it anew."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import trivium.backends.cpu.client
import trivium.compiler.driver  # noqa: F401  here, so that the process of each op need not import the compiler
from tests.suites.kept import load, store
from tests.suites.runs import ROOT
from tests.suites.tensorflow.apart import apart
from tests.suites.tensorflow.checks import INVALID, Verdict, checked, checked_function
from tests.suites.tensorflow.draws import drawn
from tests.suites.tensorflow.ops import registered, remember
from tests.suites.tensorflow.page import page
from trivium.importers.tensorflow.context import rule

TRIES = 8
"""How many calls are drawn for one that TensorFlow accepts."""

PATIENCE = 10
"""How many calls of an op TensorFlow may refuse."""

FLOATS = (tf.float32, tf.float64, tf.float16, tf.bfloat16)

ROUGH = frozenset({"Conv2DBackpropFilter", "Conv2DBackpropInput"})
"""Where TensorFlow's kernel adds up numbers of bfloat16 as they are, and is further from the exact result than ours."""

ENDED: dict[str, Any] = {"counts": {}, "reasons": {INVALID: "TensorFlow ended the process"}}


def main() -> None:
    options = arguments()
    is_whole = not (options.only or options.rest or options.page_only)
    results = {} if is_whole else load(options.results)
    if not options.page_only:
        types = apart(registered)
        assert types is not None
        remember(types)
        for op in options.only or sorted(set(types) & set(rule)):
            if options.rest and op in results:
                continue
            results[op] = apart(lambda op=op: result_of(op, options.calls, options.seed)) or ENDED
            _tell(op, results[op])
            store(options.results, results)
    if options.page is not None:
        options.page.write_text(page(results))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.tensorflow", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of ops")
    parser.add_argument("--rest", action="store_true", help="only ops that have no result yet")
    parser.add_argument("--calls", type=int, default=40, help="calls of each op that TensorFlow accepts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=ROOT / "out/tensorflow_suite/results.json")
    parser.add_argument("--page", type=Path, help="write the page there")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    return parser.parse_args()


def result_of(op: str, calls: int, seed: int) -> dict[str, Any]:
    """Returns how many calls of an op were equal, refused and wrong, and the first reason for each of the latter."""
    counts: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for what, verdict in (*_of_cases(op), *_of_draws(op, calls, seed)):
        counts[verdict.kind] = counts.get(verdict.kind, 0) + 1
        if verdict.reason:
            reasons.setdefault(verdict.kind, f"{what}: {verdict.reason}")
    return {"counts": counts, "reasons": reasons}


def _of_draws(op: str, calls: int, seed: int) -> Iterator[tuple[str, Verdict]]:
    """Draws until TensorFlow has accepted as many calls, or refused many times as many."""
    refused = 0
    for number in range(calls * TRIES):
        try:
            call = drawn(op, seed + number)
        except LookupError:  # an input or an attribute of a kind that is not drawn
            return
        verdict = checked(call)
        calls -= verdict.kind != INVALID
        refused += verdict.kind == INVALID
        yield str(call), verdict
        if not calls or refused > PATIENCE:
            return


def _of_cases(op: str) -> Iterator[tuple[str, Verdict]]:
    """The cases of the importer's tests, in each type of floats."""
    from tests.importers.tensorflow.cases import CASES
    from tests.importers.tensorflow.fused_cases import FUSED_CASES
    from tests.importers.tensorflow.more_cases import MORE_CASES
    from tests.importers.tensorflow.uniform_cases import UNIFORM_CASES

    for case in (x for x in (*CASES, *MORE_CASES, *FUSED_CASES, *UNIFORM_CASES) if x.op == op):
        for dtype in FLOATS[:-1] if op in ROUGH else FLOATS:
            if dtype == tf.float32 or any(x.dtype == np.float32 for x in case.inputs):
                kind = dtype.as_numpy_dtype
                inputs = [x.astype(kind) if x.dtype == np.float32 else x for x in case.inputs]
                described = ", ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
                yield f"{op}({described})", checked_function(case.function, inputs)


def _tell(op: str, result: dict[str, Any]) -> None:
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(result["counts"].items()))
    print(f"{op}: {counts or 'not drawn'}", flush=True)
    for kind in ("wrong", "refused"):
        if kind in result["reasons"]:
            print(f"  {kind}: {result['reasons'][kind]}", flush=True)


if __name__ == "__main__":
    main()
