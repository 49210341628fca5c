"""Runs several processes of one program at once: each replica and partition is a thread with its own interpreter."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from trivium.ir.arrays import Datum
from trivium.ir.core import Operation
from trivium.ir.declare import Op, prefixed
from trivium.ir.errors import Error, VerificationError
from trivium.ir.func import Module, Symbols
from trivium.ir.interpreter import Interpreter
from trivium.ir.process import Grid, Id, Process


def run_parallel(
    module: Module,
    programs: Sequence[Sequence[str]],
    arguments: Sequence[Sequence[Datum]],
    infeed: Sequence[Sequence[Datum]] = (),
) -> list[tuple[Datum, ...]]:
    """Runs function `programs[r][p]` of the module in the process of replica r and partition p, all at once. Arguments
    and returned results are in the order of the processes, with the partitions of a replica next to each other.
    `infeed` has the values for the `infeed` ops, in order. Raises the first error of any process."""
    _check_configuration(module, programs)
    grid = Grid(len(programs), len(programs[0]), deque(infeed))
    results: dict[Id, tuple[Datum, ...]] = {}

    def run(identity: Id, name: str, given: Sequence[Datum]) -> None:
        try:
            results[identity] = Interpreter(module, process=Process(grid, *identity)).call(name, list(given))
        except Error as error:
            grid.fail(error)
        finally:
            grid.leave(identity)

    names = [name for row in programs for name in row]
    threads = [
        threading.Thread(target=run, args=work, daemon=True) for work in zip(grid.ids, names, arguments, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if grid.error is not None:
        raise grid.error
    return [results[identity] for identity in grid.ids]


class _Configuration(Symbols):
    """The symbols of a module that runs as this many replicas and partitions, regardless of its own attributes."""

    def __init__(self, replicas: int, partitions: int):
        super().__init__()
        self.counts = replicas, partitions

    def processes(self, op: Operation) -> tuple[int | None, int | None]:
        return self.counts


def _check_configuration(module: Module, programs: Sequence[Sequence[str]]) -> None:
    """Checks the functions that will run against the numbers of replicas and partitions."""
    configuration = _Configuration(len(programs), len(programs[0]))
    for name in {name for row in programs for name in row}:
        for op in module.function(name).walk():
            if not isinstance(op, Op) or (check := type(op).CHECK_SYMBOLS) is None:
                continue
            try:
                check(op, configuration)
            except VerificationError as error:
                raise prefixed(error, type(op)).add(source=op.location.describe() or None) from None
