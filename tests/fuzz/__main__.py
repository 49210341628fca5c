"""`python -m tests.fuzz --texts 200000 --artifacts 200000`: mutates programs at random, and reports each input that is
neither a valid program nor refused with one of our errors. Set `TRIVIUM_CONFORMANCE` for more seeds."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.campaign import KINDS, Kind, Tally, minimized, run, with_alarm
from tests.fuzz.container import MAGIC
from tests.fuzz.judge import Finding


def main() -> int:
    """Runs the campaigns of the command line; returns 1 if anything was found."""
    options = _options()
    if options.replay:
        return _replay(options.replay)
    found = 0
    for name, kind in KINDS.items():
        if count := getattr(options, name):
            found += _campaign(name, kind, range(options.first, options.first + count), options)
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--texts", type=int, default=0, help="how many texts")
    parser.add_argument("--artifacts", type=int, default=0, help="how many artifacts")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes at a time")
    parser.add_argument("--save", type=Path, help="a folder for the smallest input of each finding")
    parser.add_argument("--replay", type=Path, help="a saved input: tells what becomes of it, and nothing else")
    return parser.parse_args()


def _replay(path: Path) -> int:
    data = path.read_bytes()
    kind = KINDS["artifacts" if data.startswith(MAGIC) else "texts"]
    given = data if kind is KINDS["artifacts"] else data.decode("utf-8", "surrogatepass")
    try:
        print(with_alarm(kind.judge, given))
    except Finding as finding:
        print(finding.key, finding.detail, sep="\n")
        return 1
    return 0


def _campaign(name: str, kind: Kind, indices: range, options: argparse.Namespace) -> int:
    total, start = Tally(), time.monotonic()
    for tally in run(kind, options.seed, indices, options.jobs):
        for key in tally.found.keys() - total.found.keys():
            print(f"{name}:{tally.found[key].index}: {key}", flush=True)
        total.add(tally)
        done = total.outcomes.total()
        print(f"{done} {name}, {done / (time.monotonic() - start):.0f}/s", file=sys.stderr, flush=True)
    print(f"{name}: {total.outcomes.total()} inputs: {dict(total.outcomes.most_common())}")
    print(f"{name}: slowest {total.slowest[0]:.2f} s ({name}:{total.slowest[1]}),", end=" ")
    print(f"most memory {total.peak[0]:.0f} MB over the start ({name}:{total.peak[1]})")
    for found in sorted(total.found.values(), key=lambda found: -found.count):
        print(f"{found.count:6} {found.key}  ({name}:{found.index}, {len(found.input)} long)")
    if options.save:
        _save(options.save, kind, total)
    return len(total.found)


def _save(folder: Path, kind: Kind, tally: Tally) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, found in enumerate(tally.found.values()):
        data = minimized(kind, found) if not found.key.startswith(("crash", "hang")) else found.input
        content = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        (folder / f"{number:03}{kind.suffix}").write_bytes(content)
        (folder / f"{number:03}.txt").write_text(f"{found.key}\n{found.index}\n{found.detail}", "utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
