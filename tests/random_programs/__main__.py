"""`python -m tests.random_programs --count 30000 --seed 1 --jobs 2`: compiles random programs and lists those that do
not compute what the interpreter does. Each is compiled for two of the four configurations of `runner`, which together
have both widths of vectors and both numbers of threads; with `--everywhere`, for all four. The exit code is 1 if
anything was found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.random_programs.campaign import HANG, Found, Tally, run
from tests.random_programs.programs import random_program
from tests.random_programs.runner import Finding, judge
from tests.random_programs.shrinker import shrink
from trivium.ir.text import parse

MOST_SHRUNK = 12
SECONDS_SHOWN = 20.0


def main() -> int:
    """Runs what the command line requests."""
    options = _options()
    if options.replay:
        return _replay(options)
    tally, printed, shown = Tally(), 0, 0.0
    for tally in run(options.seed, options.count, options.jobs, options.everywhere):
        for found in tally.found[printed:]:
            print(f"{found.seed}: {found.key}: {found.detail}", flush=True)
        printed = len(tally.found)
        if tally.seconds > shown + SECONDS_SHOWN:
            rate, shown = tally.programs / tally.seconds, tally.seconds
            print(f"{tally.programs} programs, {rate:.1f}/s, {printed} found", file=sys.stderr, flush=True)
    print(f"{tally.programs} programs in {tally.seconds:.0f} s, {len(tally.found)} findings, ", end="")
    print(f"{tally.undecided} undecided, {tally.ops.total()} ops of {len(tally.ops)} kinds")
    if options.ops:
        print("\n".join(f"{count:8} {name}" for name, count in tally.ops.most_common()))
    if options.save:
        _save(options.save, tally)
    return 1 if tally.found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program; the next ones follow")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes at a time")
    parser.add_argument("--everywhere", action="store_true", help="every program on all four configurations")
    parser.add_argument("--save", type=Path, help="a folder for the shrunken program of each finding")
    parser.add_argument("--ops", action="store_true", help="list how often each op occurred")
    parser.add_argument("--replay", help="a seed or an .mlir file: judges it on all configurations, and prints it")
    return parser.parse_args()


def _replay(options: argparse.Namespace) -> int:
    path = Path(options.replay)
    module = parse(path.read_text(), path.name) if path.exists() else random_program(int(options.replay))
    print(module)
    try:
        judge(module)
    except Finding as finding:
        print(finding.key, finding.detail, sep="\n")
        return 1
    return 0


def _save(folder: Path, tally: Tally) -> None:
    """Shrinks the first findings of each kind, and writes them as cases."""
    folder.mkdir(parents=True, exist_ok=True)
    for found in [found for found in tally.found if found.key != HANG][:MOST_SHRUNK]:
        module = shrink(random_program(found.seed), found.key)
        (folder / f"seed_{found.seed}.mlir").write_text(f"// {_line(found)}\n{module}\n")
        print(f"// {_line(found)}\n{module}", flush=True)


def _line(found: Found) -> str:
    return " ".join(f"{found.key}: {found.detail}".split())[:110]


if __name__ == "__main__":
    sys.exit(main())
