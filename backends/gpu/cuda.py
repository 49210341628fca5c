"""NVIDIA GPUs, through the driver API: one stream per device orders allocations, copies and kernels. A sequence of
launches and copies that repeats with the same memory becomes a CUDA graph, which is launched by one call."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from trivium.backends.gpu import dlpack, nvptx, ptxas
from trivium.backends.gpu.cuda_library import NOT_READY, CudaError, Current, Library, devices, during, library
from trivium.backends.gpu.cuda_maps import CudaKernel
from trivium.backends.gpu.cuda_memory import UNTIMED, CudaMemory, Pool, PoolStatistics, Staging
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.driver import AnyDriver, Memory, Queue, Recordings
from trivium.backends.gpu.plan import TensorMap
from trivium.ir.errors import Error

NON_BLOCKING = 1
"""A stream that does not wait for the default stream."""

_UNITS, _MAJOR, _MINOR, _POOLS, _MEMORY_CLOCK, _BUS = 16, 75, 76, 115, 36, 37
"""Attributes of a device."""

_GRANTED = 8
"""The attribute of a function that is the most memory which a launch grants each block."""

_RELAXED = 2
"""A capture that forbids no calls: finalizers may give things back while one is made, in any thread."""

_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
"""Options of loading a module."""

LOG = 8 << 10

RECORDINGS = 8
"""The number of graphs that are kept for one program."""


def count() -> int:
    """Returns the number of devices. Raises an `Error` if there are none."""
    return devices(library())


class CudaModule:
    """Loaded code, which is unloaded with the last of its kernels."""

    def __init__(self, device: Cuda, handle: int):
        self.handle = handle
        device.owns(self, "cuModuleUnload", handle)


class CudaEvent:
    """A point in the stream."""

    def __init__(self, device: Cuda, handle: int):
        self._device, self._handle = device, handle
        device.owns(self, "cuEventDestroy_v2", handle)

    def is_ready(self) -> bool:
        with self._device.current(), during("asking whether the device is done"):
            return self._device._cuda.cuEventQuery(self._handle) != NOT_READY

    def wait(self) -> None:
        with self._device.current(), during("waiting for the device"):
            self._device._cuda.cuEventSynchronize(self._handle)


class CudaStream:
    """A queue of work, which may be used only while the device's context is current."""

    def __init__(self, cuda: Library, handle: int, staging: Staging):
        self._cuda, self.handle = cuda, handle
        self._staging = staging

    def launch(self, kernel: CudaKernel, blocks: int, threads: int, arguments: Sequence[CudaMemory | None]) -> None:
        addresses = [argument.address if argument is not None else 0 for argument in arguments]
        self.launch_at(kernel, blocks, threads, addresses)

    def launch_at(self, kernel: CudaKernel, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        size = blocks, 1, 1, threads, 1, 1
        with during("launching {}, {} blocks of {} threads", kernel.name, blocks, threads):
            given = kernel.given(addresses)
            self._cuda.cuLaunchKernel(kernel.function, *size, kernel.granted, self.handle, given, None)

    def copy(self, target: CudaMemory, source: CudaMemory, nbytes: int) -> None:
        if nbytes:
            with during("copying {} bytes on the device", nbytes):
                self._cuda.cuMemcpyDtoDAsync_v2(target.address, source.address, nbytes, self.handle)

    def upload(self, target: CudaMemory, source: np.ndarray) -> None:
        if source.nbytes:
            with during(f"copying {source.nbytes} bytes to the device"):
                self._staging.upload(target.address, source.reshape(-1).view(np.uint8), self.handle)

    def download(self, target: np.ndarray, source: CudaMemory) -> None:
        with during(f"copying {target.nbytes} bytes from the device"):
            if target.nbytes:
                self._staging.download(target.reshape(-1).view(np.uint8), source.address, self.handle)
            else:
                self._cuda.cuStreamSynchronize(self.handle)


Enqueue = Callable[[Queue[CudaMemory, CudaKernel]], None]


class CudaGuest(CudaStream):
    """A stream of another library."""

    def __init__(self, device: Cuda, handle: int, staging: Staging):
        super().__init__(device._cuda, handle, staging)
        self._device = device

    def memory(self, address: int, nbytes: int) -> CudaMemory:
        return CudaMemory(address, nbytes)

    def repeat(self, kept: Recordings, addresses: tuple[int, ...], enqueue: Enqueue) -> None:
        self._device.repeat_on(self, kept, addresses, enqueue)


class Visit:
    """A queue of another library, for a while. Ours waits for it at the end."""

    __slots__ = ("_after_ours", "_current", "_device", "_guest")

    def __init__(self, device: Cuda, stream: int, after_ours: bool):
        self._device, self._after_ours = device, after_ours
        self._guest = CudaGuest(device, stream, device._staging)
        self._current = device.current()

    def __enter__(self) -> CudaGuest:
        self._current.__enter__()
        if self._after_ours:
            try:
                self._device._follow(self._guest.handle, self._device._stream.handle)
            except BaseException:
                self._current.__exit__(None, None, None)
                raise
        return self._guest

    def __exit__(self, *_: object) -> None:
        try:
            self._device._follow(self._device._stream.handle, self._guest.handle)
        finally:
            self._current.__exit__(None, None, None)


class CudaGraph:
    """Launches and copies that are enqueued with one call."""

    def __init__(self, device: Cuda, handle: int):
        self.handle = handle
        device.owns(self, "cuGraphExecDestroy", handle)


_ORDERING = during("ordering two streams")


class Cuda:
    """An NVIDIA device, or one of another vendor whose library has the same functions."""

    platform: ClassVar[str] = "cuda"
    dlpack_device: ClassVar[int] = dlpack.CUDA
    _entering: ClassVar[Mapping[str, str]] = {"enter": "cuCtxPushCurrent_v2", "leave": "cuCtxPopCurrent_v2"}
    """The functions between whose calls native code uses events."""

    def __init__(self, number: int):
        self._cuda = self._library()
        if number >= (found := devices(self._cuda)):
            expected = ", ".join(f"{self.platform}:{other}" for other in range(found))
            raise Error(f"there is no device {self.platform}:{number}, expected one of {expected}")
        self._capturing, self._linking = threading.Lock(), threading.Lock()
        self._readers: set[int] = set()
        self._given: dict[int, tuple[Callable[..., object], tuple[int, ...]]] = {}
        self._resources = ExitStack()
        with ExitStack() as opened, during(f"opening device {number}"):
            self._device = self._cuda.value("cuDeviceGet", ctypes.c_int, number)
            self._describe()
            memory = self._cuda.value("cuDeviceTotalMem_v2", ctypes.c_size_t, self._device)
            self.target = replace(self.target, memory_bytes=memory)
            self._retain(opened)
            opened.callback(self._close_inside)
            with self.current():
                self._open(self._resources)
            self._opened = opened.pop_all()

    def _open(self, opened: ExitStack) -> None:
        """Creates the resources that work on the device needs; `opened` closes them in reverse order."""
        handles = []
        for _ in range(2):
            handles.append(self._cuda.value("cuStreamCreate", ctypes.c_void_p, NON_BLOCKING))
            opened.callback(self._cuda.cuStreamDestroy_v2, handles[-1])
        self._staging = Staging(self._cuda, opened)
        self._stream, self._captured = (CudaStream(self._cuda, handle, self._staging) for handle in handles)
        self._pool = Pool(self._cuda, self._device, handles[0], self.current, self.owns, self._return)
        opened.callback(self._cuda.cuMemPoolDestroy, self._pool.handle)
        self._pool.keep()
        self._link = self._cuda.value("cuEventCreate", ctypes.c_void_p, UNTIMED)
        opened.callback(self._cuda.cuEventDestroy_v2, self._link)
        opened.callback(self._return_all)
        opened.callback(self._cuda.cuStreamSynchronize, handles[0])

    # What differs from one vendor to another

    def _library(self) -> Library:
        return library()

    def _retain(self, opened: ExitStack) -> None:
        """Retains the device's context until `opened` is closed."""
        self._home = self._context = self._cuda.value("cuDevicePrimaryCtxRetain", ctypes.c_void_p, self._device)
        opened.callback(self._cuda.cuDevicePrimaryCtxRelease_v2, self._device)
        self._current = Current(self._cuda, self._context)

    def _describe(self) -> None:
        """Fills in the facts about the device."""
        major, minor = self._attributes(_MAJOR, _MINOR)
        self.target = nvptx.target(nvptx.emitted_for(major, minor))
        own = f"sm_{major}{minor}"
        self.architecture = self.target.cpu if self.target.cpu.startswith(own) else own
        self.dialect: Dialect = nvptx.Nvptx()
        self.kind = self._kind(*self._attributes(_UNITS, _POOLS, _MEMORY_CLOCK, _BUS))
        version = self._cuda.value("cuDriverGetVersion", ctypes.c_int)
        self._assembler = ptxas.installed_for(version, self.architecture)
        text = self._cuda.api.version_text
        by = f"ptxas {text(self._assembler.version)}" if self._assembler else "the driver's compiler"
        self.version = f"CUDA {text(version)}, code by {by}"

    def _attributes(self, *attributes: int) -> list[int]:
        return [self._cuda.value("cuDeviceGetAttribute", ctypes.c_int, one, self._device) for one in attributes]

    def _kind(self, units: int, pools: int, clock: int, bus: int) -> str:
        """Returns the device's model. Memory transfers twice in a clock, which is given in kHz, the bus in bits."""
        name = ctypes.create_string_buffer(256)
        self._cuda.cuDeviceGetName(name, len(name), self._device)
        memory = self._cuda.value("cuDeviceTotalMem_v2", ctypes.c_size_t, self._device)
        model = name.value.decode()
        if not pools:
            raise Error(f"{model} has no memory pools, which Trivium needs")
        peak = f", {2 * clock * bus / 8e6:.0f} GB/s" if clock and bus else ""
        return f"{model}, {self.architecture}, {units} units, {memory / 2**30:.1f} GB{peak}"

    def current(self) -> AbstractContextManager[None]:
        """Makes the device's context current in this thread: other libraries have their own contexts."""
        return self._current

    def owns(self, thing: object, function: str, handle: int, *operands: int) -> None:
        """Calls a function of the driver when nothing refers to `thing` any more, or when the device is closed."""
        self._given[handle] = getattr(self._cuda, function), (handle, *operands)
        weakref.finalize(thing, self._returned, handle).atexit = False

    def _returned(self, handle: int) -> None:
        # A finalizer cannot raise an error. One that matters returns with the next call.
        if handle in self._given and not self._pool.keeps(handle):
            with suppress(CudaError), self.current():
                self._return(handle)

    def _return(self, handle: int) -> None:
        function, operands = self._given.pop(handle)
        function(*operands)

    def _return_all(self) -> None:
        with ExitStack() as rest:
            for handle in list(self._given):
                rest.callback(self._return, handle)

    def close(self) -> None:
        """Waits for the device and releases all its resources. Nothing that came from it may be used afterwards."""
        with during("closing the device"):
            self._opened.close()

    def _close_inside(self) -> None:
        with self.current():
            self._resources.close()

    def memory(self) -> PoolStatistics:
        """Returns how much of the device's memory is in use."""
        return self._pool.statistics()

    def allocate(self, nbytes: int) -> CudaMemory:
        return self._pool.allocate(nbytes)

    def load(
        self, binary: bytes, granted: Mapping[str, int], maps: Mapping[str, Sequence[TensorMap]]
    ) -> Mapping[str, CudaKernel]:
        if self._assembler and not binary.startswith(b"\x7fELF"):
            binary = self._assembler.assembled(binary, self.architecture)
        with self.current(), during(f"loading code for {self.architecture}"):
            module = CudaModule(self, self._loaded(binary))
            return {name: self._kernel(module, name, nbytes, maps.get(name, ())) for name, nbytes in granted.items()}

    def _kernel(self, module: CudaModule, name: str, granted: int, maps: Sequence[TensorMap]) -> CudaKernel:
        function = self._cuda.value("cuModuleGetFunction", ctypes.c_void_p, module.handle, name.encode())
        if granted:
            self._cuda.cuFuncSetAttribute(function, _GRANTED, granted)
        return CudaKernel(name, function, granted, module, maps)

    def _loaded(self, binary: bytes) -> int:
        log = ctypes.create_string_buffer(LOG)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG)
        try:
            # PTX is text that ends with a zero.
            return self._cuda.value("cuModuleLoadDataEx", ctypes.c_void_p, binary + b"\0", 2, options, values)
        except CudaError as error:
            said = log.value.decode(errors="replace").strip()
            raise CudaError(f"{error.reason}{said and f': {said[:1000]}'}", error.code) from error

    def launch(self, kernel: CudaKernel, blocks: int, threads: int, arguments: Sequence[CudaMemory | None]) -> None:
        with self.current():
            self._stream.launch(kernel, blocks, threads, arguments)

    def copy(self, target: CudaMemory, source: CudaMemory, nbytes: int) -> None:
        with self.current():
            self._stream.copy(target, source, nbytes)

    def upload(self, target: CudaMemory, source: np.ndarray) -> None:
        with self.current():
            self._stream.upload(target, source)

    def download(self, target: np.ndarray, source: CudaMemory) -> None:
        with self.current():
            self._stream.download(target, source)

    def receive(self, target: CudaMemory, source: Memory, sender: AnyDriver) -> bool:
        """Copies from memory of another device of the same library. The driver uses the host's memory if the devices
        are not connected."""
        if not isinstance(sender, Cuda) or sender.platform != self.platform or not isinstance(source, CudaMemory):
            return False
        with during(f"copying {source.nbytes} bytes from {sender.platform}:{sender._device}"):
            sender._open_to(self._device)
            self._follow_device(sender)
            with self.current():
                places = target.address, self._home, source.address, sender._home
                if source.nbytes:
                    self._cuda.cuMemcpyPeerAsync(*places, source.nbytes, self._stream.handle)
            # It may use the memory for something else afterwards.
            sender._follow_device(self)
        return True

    def _open_to(self, reader: int) -> None:
        """Lets another device access this one's memory, if they are connected."""
        if reader in self._readers:
            return
        if self._cuda.value("cuDeviceCanAccessPeer", ctypes.c_int, reader, self._device):
            self._pool.open_to(reader)
        self._readers.add(reader)

    def _follow_device(self, leader: Cuda) -> None:
        """Makes the stream wait for all work that was enqueued on another device so far."""
        with leader._linking:
            with leader.current():
                self._cuda.cuEventRecord(leader._link, leader._stream.handle)
            with self.current():
                self._cuda.cuStreamWaitEvent(self._stream.handle, leader._link, 0)

    @property
    def dlpack_place(self) -> dlpack.Place:
        """The device, as DLPack names it."""
        return self.dlpack_device, self._device

    def borrowed(self, array: object) -> tuple[CudaMemory, np.dtype, tuple[int, ...]] | None:
        found = dlpack.borrow(array, self.dlpack_place, self._stream.handle, self._finished)
        if found is None:
            return None
        memory = found.memory
        if memory.address % self.target.vector_bytes:
            copied = self.allocate(memory.nbytes)
            self.copy(copied, memory, memory.nbytes)
            memory = copied
        return memory, found.dtype, found.shape

    def lent(self, memory: CudaMemory, dtype: np.dtype, shape: tuple[int, ...]) -> object:
        """Returns an array of this device's memory as a capsule of DLPack."""
        self._finished()
        return dlpack.lend(memory, dtype, shape, self.dlpack_place)

    def _finished(self) -> None:
        """Waits until all work is done; an error returns with the next call."""
        with suppress(CudaError), self.current():
            self._cuda.cuStreamSynchronize(self._stream.handle)

    def event(self) -> CudaEvent:
        with self.current(), during("marking a place in the stream"):
            event = CudaEvent(self, self._cuda.value("cuEventCreate", ctypes.c_void_p, UNTIMED))
            self._cuda.cuEventRecord(event._handle, self._stream.handle)
            return event

    def native_event(self) -> Mapping[str, int]:
        with self.current(), during("marking a place in the stream"):
            event = self._cuda.value("cuEventCreate", ctypes.c_void_p, UNTIMED)
            self._cuda.cuEventRecord(event, self._stream.handle)
        return {**self._for_native_code, "context": self._context, "event": event}

    @cached_property
    def _for_native_code(self) -> Mapping[str, int]:
        """Returns where the functions are with which native code uses events."""
        functions = {"wait": "cuEventSynchronize", "destroy": "cuEventDestroy_v2", **self._entering}
        return {stage: self._cuda.address(name) for stage, name in functions.items()}

    def address(self, memory: CudaMemory) -> int:
        return memory.address

    def at_address(self, address: int, nbytes: int) -> CudaMemory:
        return CudaMemory(address, nbytes)

    def guest(self, stream: int, after_ours: bool) -> AbstractContextManager[CudaGuest]:
        """Returns a stream of another library. Ours waits for it at the end, so that memory which it has used is not
        used again before."""
        return Visit(self, stream, after_ours)

    def _follow(self, follower: int, leader: int) -> None:
        """Makes a stream wait for all work that was enqueued on another one so far."""
        with self._linking, _ORDERING:
            self._cuda.cuEventRecord(self._link, leader)
            self._cuda.cuStreamWaitEvent(follower, self._link, 0)

    def repeat(self, kept: Recordings, memories: Sequence[CudaMemory], enqueue: Enqueue) -> None:
        with self.current():
            self.repeat_on(self._stream, kept, tuple(memory.address for memory in memories), enqueue)

    def repeat_on(self, stream: CudaStream, kept: Recordings, addresses: tuple[int, ...], enqueue: Enqueue) -> None:
        """Enqueues on a stream what `enqueue` does: by itself the first time, as a graph from the second time on."""
        known, graph = addresses in kept, kept.pop(addresses, None)
        if known and graph is None:
            graph = self._graph(enqueue)
        kept[addresses] = graph
        while len(kept) > RECORDINGS:
            del kept[next(iter(kept))]
        if graph is None:
            enqueue(stream)
            return
        assert isinstance(graph, CudaGraph), "recordings are this driver's"
        with during("launching a graph"):
            self._cuda.cuGraphLaunch(graph.handle, stream.handle)

    def _graph(self, enqueue: Enqueue) -> CudaGraph:
        """Returns the enqueued work as a graph. It is captured on a separate stream, so that work which other threads
        enqueue at the same time is not part of it."""
        with self._capturing, self.current(), during("recording a graph"):
            stream = self._captured.handle
            self._cuda.cuStreamBeginCapture_v2(stream, _RELAXED)
            graph = ctypes.c_void_p()
            try:
                try:
                    enqueue(self._captured)
                finally:
                    self._cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
                return CudaGraph(self, self._cuda.value("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, 0))
            finally:
                if graph:
                    self._cuda.cuGraphDestroy(graph)
