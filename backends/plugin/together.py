"""Programs that several accelerators run together: devices hold parts of arrays, of which a program may take and return
the whole. What is joined and cut goes through the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.gpu.driver import Memory
from trivium.backends.gpu.executable import run_together
from trivium.backends.plugin.division import Division
from trivium.compiler.artifact import Slot
from trivium.compiler.passes.partition import Held

Row = list[Memory]
"""Memory of one device, for all arguments or all results."""


@dataclass(frozen=True)
class DividedProgram:
    """A program that each device has loaded; only the first one runs it, if devices exchange nothing."""

    executables: Sequence[GpuLoadedExecutable]
    division: Division

    def run_on(self, memories: Sequence[Memory]) -> None:
        """Runs on the arguments of all devices, device by device, and then on their results."""
        counts = len(self.division.arguments), len(self.division.results)
        devices = len(self.executables)
        arguments = [list(memories[counts[0] * n : counts[0] * (n + 1)]) for n in range(devices)]
        rest = memories[counts[0] * devices :]
        results = [list(rest[counts[1] * n : counts[1] * (n + 1)]) for n in range(devices)]
        runs = self.executables[:1] if self.division.is_shared else self.executables
        made = [[self._result(run, i, results[n][i]) for i in range(counts[1])] for n, run in enumerate(runs)]
        run_together(runs, self._given(runs, arguments), made)
        for i, held in enumerate(self.division.results):
            for device in range(devices):
                source = 0 if self.division.is_shared else device
                if made[source][i] is not results[device][i]:
                    self._cut(made[source][i], source, held, i, device, results[device][i])

    def _given(self, runs: Sequence[GpuLoadedExecutable], arguments: Sequence[Row]) -> list[Row]:
        """Returns the arguments of each run."""
        given = [list(arguments[number]) for number in range(len(runs))]
        for i, held in enumerate(self.division.arguments):
            slot = self.executables[0].inputs[i]
            if _is_cut(held, slot):
                whole = self.joined([row[i] for row in arguments], held, slot.shape, slot.dtype)
                for run, row in zip(runs, given, strict=True):
                    row[i] = run.uploaded(whole)
        if self.division.has_device:
            for number, (run, row) in enumerate(zip(runs, given, strict=True)):
                row.append(run.uploaded(np.asarray(number, run.inputs[-1].dtype)))
        return given

    def joined(self, parts: Sequence[Memory], held: Held, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Returns an array of which each device has a part."""
        whole = np.empty(shape, dtype)
        for device, memory in enumerate(parts):
            part = np.empty(held.part.shape, dtype)
            self.executables[device].device.client.driver.download(part, memory)
            whole[place_of(held, device)] = part
        return whole

    def _result(self, run: GpuLoadedExecutable, i: int, memory: Memory) -> Memory:
        """Returns memory for what the program returns: that of its device, or, if it has the whole, some more."""
        slot = run.outputs[i]
        cut = _is_cut(self.division.results[i], slot)
        return run.device.client.driver.allocate(slot.nbytes) if cut else memory

    def _cut(self, memory: Memory, source: int, held: Held, i: int, device: int, target: Memory) -> None:
        """Copies a device's part of a result, which another one may have."""
        slot = self.executables[0].outputs[i]
        whole = np.empty(slot.shape, slot.dtype)
        self.executables[source].device.client.driver.download(whole, memory)
        part = np.ascontiguousarray(whole[place_of(held, device)] if held.is_whole else whole)
        self.executables[device].device.client.driver.upload(target, part)


def loaded_by_all(first: GpuLoadedExecutable, others: Sequence[GpuClient]) -> list[GpuLoadedExecutable]:
    """Returns a program that one GPU has loaded, and the same program as each of the others loads it."""
    loaded = [first]
    for client in others:
        other = client.load(first.artifact, first.stages if first.has_stages else None)
        assert isinstance(other, GpuLoadedExecutable), "all are GPUs"
        loaded.append(other)
    return loaded


def _is_cut(held: Held, slot: Slot) -> bool:
    """Whether the program has the whole of what devices hold in parts."""
    return held.is_whole and held.part.shape != slot.shape


def place_of(held: Held, device: int) -> tuple[slice, ...]:
    """Returns where a device's part is."""
    pairs = zip(held.part.begins[device], held.part.shape, strict=True)
    return tuple(slice(begin, begin + extent) for begin, extent in pairs)
