"""ONNX's own backend tests on Trivium, beside ONNX Runtime: `python -m tests.suites.onnx --page docs/onnx.md` runs
those that hold tensors of numbers only, compiled, and compares with what they expect by ONNX's own tolerances. What
ONNX Runtime gave is kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.suites.kept import load, store
from tests.suites.onnx.page import Results, page
from tests.suites.runs import ROOT, Choice, File, Limits, Record, run

FILE = "tests/suites/onnx/backend.py"


def main() -> None:
    options = arguments()
    kept = {runtime: options.results / f"{runtime}.json" for runtime in ("onnxruntime", "trivium")}
    for runtime, path in kept.items():
        if not options.page_only and (runtime == "trivium" or not path.exists()):
            found = verdicts(_run(runtime, options))
            store(path, {**(_load(path) if options.only else {}), **found})
            print(runtime, {kind: sum(k == kind for k, _ in found.values()) for kind, _ in found.values()})
    if options.page is not None:
        options.page.write_text(page(_load(kept["trivium"]), _load(kept["onnxruntime"])))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.onnx", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of tests, or parts of them")
    parser.add_argument("--results", type=Path, default=ROOT / "out/onnx_suite", help="folder of what is kept")
    parser.add_argument("--page", type=Path, help="write the page there")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    return parser.parse_args()


def verdicts(record: Record) -> Results:
    """The kind and the reason of each test, by its name."""
    found = {}
    for test, outcome in record.outcomes.items():
        name = test.partition("[")[2].removesuffix("]")
        kind, _, reason = outcome.reason.removeprefix("Failed: ").partition(": ")
        failed = (kind, reason) if outcome.kind == "failed" else (outcome.kind, outcome.reason)
        found[name] = ("equal", "") if outcome.kind == "passed" else failed
    return found


def _run(runtime: str, options: argparse.Namespace) -> Record:
    from tests.suites.onnx.cases import cases

    names = [name for name in cases() if not options.only or any(part in name for part in options.only)]
    choice = Choice(tests=[f"{FILE}::test_backend[{name}]" for name in names])
    environment = {"TRIVIUM_SUITE_ON": runtime, "TRIVIUM_CACHE": "0"}
    return run(File(ROOT, FILE, environment), choice, Limits(test=120, file=3600))


def _load(path: Path) -> Results:
    return {name: (kind, reason) for name, (kind, reason) in load(path).items()}


if __name__ == "__main__":
    main()
