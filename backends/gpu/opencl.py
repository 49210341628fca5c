"""OpenCL devices, through pyopencl: GPUs whose drivers accept SPIR-V, and CPUs, on which the tests run."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NoReturn

import numpy as np

from trivium.backends.gpu import spirv
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.driver import AnyDriver, Memory, Queue, Recordings
from trivium.backends.gpu.plan import TensorMap
from trivium.ir.errors import Error, ExecutionError

_INTEL_NEEDS = "libintlc.so.5", "libirng.so", "libsvml.so", "libimf.so", "libtbb.so.12"
"""Libraries that Intel's runtime for processors needs, and does not find where pip installs it."""

_SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")


def is_installed() -> bool:
    """Whether pyopencl can be imported."""
    return find_spec("pyopencl") is not None


@functools.cache
def library() -> ModuleType:
    """Returns pyopencl, which then knows the drivers of the system and Intel's runtime, if pip has installed it."""
    if not is_installed():
        raise Error("pyopencl is not installed, expected: pip install 'trivium[opencl]'")
    with _vendors():
        import pyopencl

        # The loader reads the list of drivers once, now; it raises an error if it is empty.
        with suppress(pyopencl.LogicError):
            pyopencl.get_platforms()
    return pyopencl


@contextmanager
def _vendors() -> Iterator[None]:
    """Lets the loader find Intel's runtime: its package lists a path that does not exist."""
    folder = Path(sysconfig.get_path("data")) / "lib"
    runtime = folder / "libintelocl.so"
    if "OCL_ICD_VENDORS" in os.environ or not all((folder / name).exists() for name in (runtime.name, *_INTEL_NEEDS)):
        yield
        return
    for name in _INTEL_NEEDS:
        ctypes.CDLL(str(folder / name))
    with tempfile.TemporaryDirectory(prefix="trivium-") as vendors:
        for listed in _SYSTEM_VENDORS.glob("*.icd"):
            shutil.copy(listed, vendors)
        (Path(vendors) / "trivium-intel.icd").write_text(str(runtime))
        os.environ["OCL_ICD_VENDORS"] = vendors
        try:
            yield
        finally:
            del os.environ["OCL_ICD_VENDORS"]


@functools.cache
def devices() -> Sequence[Any]:
    """Returns the devices that take SPIR-V, as pyopencl has them: GPUs first, processors last."""
    cl = library()
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.LogicError:  # there is no platform
        return ()
    return sorted(filter(_takes_spirv, found), key=lambda device: _is_processor(device))


def count() -> int:
    """Returns the number of devices. Raises an `Error` if there are none."""
    library()
    if not devices():
        raise Error(_available())
    return len(devices())


def _takes_spirv(device: Any) -> bool:
    try:
        return "SPIR-V" in device.il_version and device.double_fp_config != 0
    except library().LogicError:  # older than OpenCL 2.1
        return False


def _is_processor(device: Any) -> bool:
    return bool(device.type & library().device_type.CPU)


class OpenClMemory:
    """A buffer, or a part of one."""

    def __init__(self, buffer: Any, nbytes: int):
        self.buffer, self.nbytes = buffer, nbytes

    def part(self, offset: int, nbytes: int) -> OpenClMemory:
        # A part is never empty for OpenCL, nor is the buffer that it is taken from.
        return OpenClMemory(self.buffer.get_sub_region(offset, max(1, nbytes)), nbytes)


class OpenClEvent:
    """A marker in the queue."""

    def __init__(self, event: Any):
        self._event = event

    def is_ready(self) -> bool:
        return self._event.command_execution_status == library().command_execution_status.COMPLETE

    def wait(self) -> None:
        with _during("waiting for the device"):
            self._event.wait()


class OpenCl:
    """An OpenCL device."""

    platform: ClassVar[str] = "opencl"

    def __init__(self, number: int):
        cl = library()
        if number >= len(devices()):
            raise Error(f"there is no device opencl:{number}, {_available()}")
        self._device = devices()[number]
        with _during(f"opening device {number}"):
            self._context = cl.Context([self._device])
            self._queue = cl.CommandQueue(self._context)
        # Parts of buffers must begin at a multiple of this many bits.
        alignment, busy = max(128, self._device.mem_base_addr_align // 8), 64 * self._device.max_compute_units
        memory = None if _is_processor(self._device) else self._device.global_mem_size
        self.target = spirv.target(alignment=alignment, busy=busy, memory_bytes=memory)
        self.dialect: Dialect = spirv.SpirV()
        gigabytes = self._device.global_mem_size / 2**30
        self.kind = f"{self._device.name.strip()}, {self._device.max_compute_units} units, {gigabytes:.1f} GB"
        self.version = f"pyopencl {cl.VERSION_TEXT}, {self._device.version.strip()}, {self._device.driver_version}"

    def allocate(self, nbytes: int) -> OpenClMemory:
        with _during(f"allocating {nbytes} bytes of {self._device.global_mem_size}"):
            flags = library().mem_flags.READ_WRITE
            return OpenClMemory(library().Buffer(self._context, flags, max(1, nbytes)), nbytes)

    def load(
        self, binary: bytes, granted: Mapping[str, int], maps: Mapping[str, Sequence[TensorMap]]
    ) -> Mapping[str, Any]:
        assert not any(granted.values()), "kernels for OpenCL have all of their memory themselves"
        assert not any(maps.values()), "devices of OpenCL copy no boxes"
        with _during("building the program"), warnings.catch_warnings():
            warnings.simplefilter("ignore", library().CompilerWarning)  # drivers report that they have succeeded
            program = library().Program(self._context, binary).build(self._options())
            return {name: library().Kernel(program, name) for name in granted}

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[OpenClMemory | None]) -> None:
        with _during(f"launching {kernel.function_name}"):
            kernel.set_args(*(argument and argument.buffer for argument in arguments))
            library().enqueue_nd_range_kernel(self._queue, kernel, (blocks * threads,), (threads,))

    def upload(self, target: OpenClMemory, source: np.ndarray) -> None:
        if source.nbytes:
            with _during("copying to the device"):
                library().enqueue_copy(self._queue, target.buffer, source, is_blocking=True)

    def download(self, target: np.ndarray, source: OpenClMemory) -> None:
        with _during("copying from the device"):
            if target.nbytes:
                library().enqueue_copy(self._queue, target, source.buffer, is_blocking=True)
            else:
                self._queue.finish()

    def copy(self, target: OpenClMemory, source: OpenClMemory, nbytes: int) -> None:
        if nbytes:
            with _during("copying on the device"):
                library().enqueue_copy(self._queue, target.buffer, source.buffer, byte_count=nbytes)

    def receive(self, target: OpenClMemory, source: Memory, sender: AnyDriver) -> bool:
        """Each device has a context of its own, and buffers cannot be used in another one."""
        return False

    def borrowed(self, array: object) -> None:
        """Arrays of other libraries are not OpenCL buffers."""

    def repeat(
        self, kept: Recordings, memories: Sequence[OpenClMemory], enqueue: Callable[[Queue[OpenClMemory, Any]], None]
    ) -> None:
        enqueue(self)

    def guest(self, stream: int, after_ours: bool) -> NoReturn:
        raise ExecutionError("a queue of another library was given to OpenCL, expected one only with CUDA or HIP")

    def event(self) -> OpenClEvent:
        with _during("waiting for the device"):
            event = library().enqueue_marker(self._queue)
            self._queue.flush()
            return OpenClEvent(event)

    def native_event(self) -> Mapping[str, int]:
        with _during("waiting for the device"):
            self._queue.finish()
        return {}

    def address(self, memory: OpenClMemory) -> NoReturn:
        raise ExecutionError("OpenCL memory has no address, expected a CUDA or HIP device")

    def at_address(self, address: int, nbytes: int) -> NoReturn:
        raise ExecutionError("memory of another library was given to OpenCL, expected that only with CUDA or HIP")

    def _options(self) -> list[str]:
        if _is_processor(self._device):  # for tests: building takes a sixth of the time
            return ["-cl-opt-disable"]
        exact = library().device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return ["-cl-fp32-correctly-rounded-divide-sqrt"] if self._device.single_fp_config & exact else []


def _available() -> str:
    if not devices():
        return "no driver of OpenCL on this machine takes SPIR-V"
    return f"expected one of {', '.join(f'opencl:{number}' for number in range(len(devices())))}"


@contextmanager
def _during(what: str) -> Iterator[None]:
    """Raises the driver's errors, with the operation that failed."""
    cl = library()
    try:
        yield
    except cl.Error as error:
        raise ExecutionError(f"OpenCL failed, {what}: {error}") from error
