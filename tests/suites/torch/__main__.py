"""Runs PyTorch's op database (`torch.testing._internal.common_methods_invocations.op_db`) through
`torch.compile(backend="trivium", fullgraph=True)`, and compares with PyTorch without a compiler.

python -m tests.suites.torch --page docs/torch.md

A program that PyTorch's own capture (`backend="aot_eager"`) cannot make one graph of does not count. Results of several
calls are joined in one file, from which the page is written."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.suites.kept import load, store
from tests.suites.runs import ROOT, Choice, File, Limits, run
from tests.suites.torch.page import page

KINDS = ("float32", "backward", "int64", "bool", "bfloat16", "complex64", "float64", "float16")
MORE_KINDS = ("complex128", "int32", "int16", "int8", "uint8")
FILE = "tests/suites/torch/opinfos.py"


def main() -> None:
    options = arguments()
    for kind in [] if options.page_only else options.dtype:
        result = tabulate(kind, options)
        # Read again: another process may have added to it.
        stored = load(options.results)
        if options.only:
            before = stored.get(kind, {})
            result["again"] = sorted({*before.get("again", ()), *result["outcomes"]})
            result["outcomes"] = before.get("outcomes", {}) | result["outcomes"]
        store(options.results, stored | {kind: result})
    if options.page is not None:
        options.page.write_text(page(load(options.results)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.torch", description=__doc__)
    parser.add_argument("--dtype", nargs="+", default=KINDS, choices=KINDS + MORE_KINDS, help="the tables to make")
    parser.add_argument("--only", nargs="+", help="names of ops to run again")
    parser.add_argument("--sample", type=float, default=1.0, help="the share of the ops that is run")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--samples", type=int, default=3, help="sample inputs of each op")
    parser.add_argument("--fallback", action="store_true", help="leave ops without a rule to eager")
    parser.add_argument("--test-limit", type=float, default=120, help="seconds for an op")
    parser.add_argument("--file-limit", type=float, default=7200, help="seconds for a table")
    parser.add_argument("--results", type=Path, default=ROOT / "out/torch_suite/results.json")
    parser.add_argument("--page", type=Path, help="write the page there")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    return parser.parse_args()


def tabulate(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """The outcomes of the ops in one kind of table."""
    settings = {"kind": kind, "samples": options.samples, "options": {"fallback": options.fallback}}
    file = File(ROOT, FILE, {"TRIVIUM_TORCH_SUITE": json.dumps(settings)})
    named = [f"{FILE}::test_op[{name}]" for name in options.only] if options.only else None
    record = run(file, Choice(options.sample, options.seed, named), Limits(options.test_limit, options.file_limit))
    outcomes = {name.partition("[")[2].removesuffix("]"): outcome for name, outcome in record.outcomes.items()}
    return {"collected": record.collected, "samples": options.samples, "outcomes": outcomes}


if __name__ == "__main__":
    main()
