"""Every record of every op, and random programs, compiled for 64-bit Arm processors and run by an emulator of one:
`python -m tests.suites.aarch64 [--every N] [--programs N] [--seed S]`. Results must be those of the interpreter. Prints
what differs, and ends with the number of differences. Needs QEMU for user programs and a cross compiler (in Debian,
`qemu-user` and `g++-aarch64-linux-gnu`)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from tests.backends.cpu.emulation import Emulated, missing
from tests.suites.aarch64.judging import judged, random_cases, record_cases


@click.command()
@click.option("--every", default=1, help="Only every N-th record.")
@click.option("--programs", default=200, help="How many random programs.")
@click.option("--seed", default=1, help="The seed of the first random program.")
def main(every: int, programs: int, seed: int) -> None:
    """Runs all programs."""
    if missing():
        raise click.ClickException(f"there is no {' and no '.join(missing())}")
    with tempfile.TemporaryDirectory() as folder:
        emulated, count, failed = Emulated.built(Path(folder)), 0, 0
        for number, cases in enumerate((record_cases(every), random_cases(seed, programs))):
            where = Path(folder) / str(number)
            where.mkdir()
            for name, failure in judged(list(cases), emulated, where):
                count, failed = count + 1, failed + bool(failure)
                if failure:
                    print(f"{name}: {failure}", flush=True)
    print(f"{count} programs, {failed} differ")
    sys.exit(min(100, failed))


if __name__ == "__main__":
    main()
