"""Programs with partitions, on several GPUs, as `trivium.compile` returns them: their arguments and results are whole
arrays of the host, of which each device gets and makes the parts that the program's shardings say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.interface import texts
from trivium.backends.pjrt import Buffer, Client
from trivium.backends.plugin.division import Division, divide, held_bytes
from trivium.backends.plugin.together import DividedProgram, loaded_by_all, place_of
from trivium.backends.staged import StagedExecutable
from trivium.compiler.artifact import Artifact
from trivium.compiler.driver import CompileOptions
from trivium.compiler.dynamic import is_dynamic
from trivium.ir.arrays import read_argument
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.func import Function, Module

PARTITIONS, REPLICAS = "mhlo.num_partitions", "mhlo.num_replicas"
"""The attributes of a module that say on how many devices it runs."""


def compile_partitioned(module: Module, clients: Sequence[Client], options: CompileOptions) -> PartitionedExecutable:
    """Compiles a module for as many GPUs as it has partitions."""
    gpus = _different_gpus(clients)
    counts = [getattr(module.extra.get(name), "value", 1) for name in (REPLICAS, PARTITIONS)]
    if counts[0] != 1 or counts[1] not in (1, len(gpus)):
        has = f"{counts[0]} replicas of {counts[1]} partitions"
        raise CompileError(
            f"the program is for {has}, expected 1 replica of {len(gpus)} partitions, one for each device"
        )
    if is_dynamic(module):
        raise CompileError(f"{module.main.sym_name} has dynamic shapes, expected static ones for several devices")
    module.verify()
    divided = divide(module, 1, len(gpus))
    assert divided is not None, "there are several devices"
    if any(held.part.terms for held in (*divided.division.arguments, *divided.division.results)):
        raise CompileError(
            f"{module.main.sym_name} takes or returns sums of which each device has terms, expected wholes"
        )
    first = gpus[0].compile(divided.program.module, options)
    assert isinstance(first, GpuLoadedExecutable), "shapes are static"
    return PartitionedExecutable(module.main, loaded_by_all(first, gpus[1:]), divided.division)


def load_partitioned(artifact: Artifact, clients: Sequence[Client]) -> PartitionedExecutable:
    """Loads on several GPUs what the artifact of a `PartitionedExecutable` says."""
    division = Division.read(artifact.texts)
    count = 1 if division is None else division.count
    if division is None or count != len(clients):
        raise Error(f"{artifact.name} was compiled for {count} devices, and is loaded for {len(clients)}")
    division.check(artifact)
    gpus = _different_gpus(clients)
    first = gpus[0].load(artifact)
    assert isinstance(first, GpuLoadedExecutable), "all are GPUs"
    return PartitionedExecutable(first.signature, loaded_by_all(first, gpus[1:]), division)


def _different_gpus(clients: Sequence[Client]) -> list[GpuClient]:
    if not clients:
        raise Error("there are no devices, expected the name of one, or of several GPUs")
    gpus = [client for client in clients if isinstance(client, GpuClient)]
    names = [f"{client.platform_name}:{client.devices[0].id}" for client in clients]
    if len(gpus) < len(clients) or len(set(names)) < len(names):
        raise Error(f"the devices are {', '.join(names)}, expected different GPUs")
    return gpus


class PartitionedExecutable(StagedExecutable):
    """A program that several GPUs have loaded. Its stages are those of the program that each of them runs."""

    def __init__(self, main: Function, loaded: Sequence[GpuLoadedExecutable], division: Division):
        super().__init__(loaded[0].artifact, loaded[0].stages if loaded[0].has_stages else None)
        self.device = loaded[0].device
        self._main, self._loaded, self._division = main, loaded, division
        self._together = DividedProgram(loaded, division)

    @property
    def signature(self) -> Function:
        return self._main

    def stage(self, name: str) -> str:
        return self._loaded[0].stage(name)

    def execute(self, *arguments: object) -> list[np.ndarray]:
        """Runs on host arrays and returns new ones, which belong to the caller."""
        kinds, held = self._main.function_type.inputs, self._division.arguments
        if len(arguments) != len(kinds):
            raise ExecutionError(f"{self.name} was given {len(arguments)} arguments, expected {len(kinds)}")
        pairs = enumerate(zip(arguments, kinds, strict=True))
        wholes = [read_argument(given, kind, f"argument {i} of {self.name}") for i, (given, kind) in pairs]
        memories = []
        for number, one in enumerate(self._loaded):
            memories += [one.uploaded(whole[place_of(each, number)]) for whole, each in zip(wholes, held, strict=True)]
        outputs = self._loaded[0].outputs
        sizes = held_bytes(outputs, self._division.results)
        made = [[one.device.client.driver.allocate(nbytes) for nbytes in sizes] for one in self._loaded]
        self._together.run_on([*memories, *(memory for row in made for memory in row)])
        results = zip(*made, self._division.results, self._main.function_type.results, outputs, strict=True)
        return [
            self._together.joined(parts, held, kind.static_shape, slot.dtype)  # type: ignore[union-attr]
            for *parts, held, kind, slot in results
        ]

    def execute_buffers(self, arguments: Sequence[Buffer]) -> NoReturn:
        raise ExecutionError(f"{self.name} is for several GPUs, expected arrays of the host in place of buffers")

    def execute_at(self, pointers: Sequence[int]) -> NoReturn:
        raise ExecutionError(f"{self.name} is for several GPUs, expected arrays in place of addresses")

    def whole(self) -> Artifact:
        """Returns the artifact with all constants embedded, for `load_partitioned`."""
        artifact = self._loaded[0].whole()
        return replace(artifact, texts={**artifact.texts, **self._division.texts(), **texts(self._main)})
