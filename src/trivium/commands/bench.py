"""Fair measurements of latency: contenders take turns, so that changes in the machine's speed affect all of them, and
medians are reported."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from trivium.ir.errors import Error
from trivium.ir.func import Module

Contender = Callable[[], object]


SETTLE = 0.06
"""Seconds to wait for the threads of the previous contender, which spin for a while after their work, to sleep."""

TURN = 0.1
"""The length of one contender's turn in seconds."""


def measure(contenders: Mapping[str, Contender], seconds: float = 3.0) -> dict[str, tuple[float, float]]:
    """Returns the median and the fastest time of a call, in seconds, of each contender, in about `seconds` each."""
    if not math.isfinite(seconds):
        raise Error(f"seconds has {seconds}, expected a number")
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()  # compiles and allocates
    for _ in range(max(3, round(seconds / (TURN + SETTLE)))):
        for name, call in contenders.items():
            time.sleep(SETTLE)
            call()  # the previous contender left its data in the caches
            times[name] += _turn(call)
    return {name: (statistics.median(values), min(values)) for name, values in times.items()}


def _turn(call: Contender) -> list[float]:
    """Returns the times of the calls that fit into a turn, at least one."""
    found: list[float] = []
    while sum(found) < TURN:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found


def contenders(
    module: Module, arguments: Sequence[np.ndarray], names: Sequence[str], threads: int | None
) -> dict[str, Contender]:
    """Compiles the program with each of the named peers: `xla` (through JAX) or `iree`."""
    made = {}
    for name in names:
        if name not in _PEERS:
            raise Error(f"unknown peer {name!r}, expected one of {', '.join(_PEERS)}")
        made[name] = _PEERS[name](module, arguments, threads)
    return made


def _xla(module: Module, arguments: Sequence[np.ndarray], threads: int | None) -> Contender:
    try:
        import jax
        from jax.extend import backend as backends
        from jaxlib import _jax
    except ModuleNotFoundError:
        raise Error("JAX is not installed, expected: pip install 'trivium[jax]' to measure against xla") from None
    if threads is not None:
        raise Error("xla has no option for the number of threads; pin the process instead (taskset), or omit --threads")
    client = backends.get_backend("cpu")
    devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
    loaded = client.compile_and_load(module.text(elide=False), devices, _jax.CompileOptions())
    inputs = [jax.device_put(array, client.local_devices()[0]) for array in arguments]

    def call() -> None:
        results = loaded.execute_sharded(inputs).disassemble_into_single_device_arrays()
        for shards in results:
            shards[0].block_until_ready()

    return call


def _iree(module: Module, arguments: Sequence[np.ndarray], threads: int | None) -> Contender:
    try:
        import iree.compiler as compiler  # pyright: ignore[reportMissingImports]
        import iree.runtime as runtime  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise Error("IREE is not installed, expected: pip install iree-base-compiler iree-base-runtime") from None
    binary = compiler.compile_str(
        module.text(elide=False),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    config = runtime.Config("local-task" if threads != 1 else "local-sync")
    loaded = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
    inputs = [runtime.asdevicearray(config.device, array) for array in arguments]
    return lambda: loaded[module.main.sym_name](*inputs)


_PEERS = {"xla": _xla, "iree": _iree}
