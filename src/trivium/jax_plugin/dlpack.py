"""DLPack for arrays of Trivium's devices. JAX exports arrays of its own platforms only, and puts what it imports from
the host's memory on its CPU platform, where computations with it would then run."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, cast

import jax
from jax._src import config, dlpack, xla_bridge
from jax._src.array import ArrayImpl
from jax._src.typing import DLDeviceType

CPU = DLDeviceType.kDLCPU


def register(platform: str) -> None:
    """Lets arrays of the platform be exported; and if it is the default platform, imported. JAX has no public way to
    register either."""
    module = cast(Any, dlpack)
    module._DL_DEVICE_TO_PLATFORM = _Platforms(module._DL_DEVICE_TO_PLATFORM, platform)
    module._jax = _Functions(module._jax, platform)
    array = cast(Any, ArrayImpl)
    array.__dlpack__ = _exporting(array.__dlpack__, platform)
    array.__dlpack_device__ = _located(array.__dlpack_device__, platform, lambda _: (CPU, 0))


def register_gpu(platform: str) -> None:
    """Lets arrays of a platform of GPUs be exported, in the GPU's memory."""
    array = cast(Any, ArrayImpl)
    array.__dlpack__ = _exporting_from_gpu(array.__dlpack__, platform)
    array.__dlpack_device__ = _located(array.__dlpack_device__, platform, _place_on_gpu)


class _Platforms(dict):
    """The platform of arrays by their kind of device in DLPack."""

    def __init__(self, platforms: dict[enum.Enum, str], platform: str):
        super().__init__(platforms)
        self._platform = platform

    def __getitem__(self, kind: object) -> str:
        return self._platform if kind == CPU and _default() == self._platform else super().__getitem__(kind)


class _Functions:
    """JAX's native functions. Its client of plugins cannot copy what it imports."""

    def __init__(self, functions: Any, platform: str):
        self._functions, self._platform = functions, platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._functions, name)

    def dlpack_managed_tensor_to_buffer(self, tensor: object, device: Any, stream: object, *options: Any) -> Any:
        copy, *rest = options or (None,)
        if device.platform != self._platform:
            return self._functions.dlpack_managed_tensor_to_buffer(tensor, device, stream, *options)
        shared = self._functions.dlpack_managed_tensor_to_buffer(tensor, device, stream, None, *rest)
        return jax.numpy.array(shared, copy=True) if copy else shared


def _default() -> str:
    """Returns the platform on which JAX creates arrays."""
    chosen = config.default_device.value
    return xla_bridge.default_backend() if chosen is None else getattr(chosen, "platform", chosen)


def _exporting(export: Callable[..., object], platform: str) -> Callable[..., object]:
    """The function that exports an array: one of this platform as an array of JAX's CPU platform in the same memory."""

    def __dlpack__(self: jax.Array, *, dl_device: tuple[enum.Enum, int] | None = None, **options: Any) -> object:
        if _is_on(self, platform):
            self = jax.device_put(self, jax.devices("cpu")[0])
        if dl_device is not None and dl_device[0] == CPU and _is_on(self, "cpu"):
            dl_device = None
        return export(self, dl_device=dl_device, **options)

    return __dlpack__


def _located(
    locate: Callable[..., object], platform: str, place_of: Callable[[jax.Array], object]
) -> Callable[..., object]:
    """The function that returns where an array is, as DLPack names it."""

    def __dlpack_device__(self: jax.Array) -> object:
        return place_of(self) if _is_on(self, platform) else locate(self)

    return __dlpack_device__


def _exporting_from_gpu(export: Callable[..., object], platform: str) -> Callable[..., object]:
    """The function that exports an array: one of this platform when all work on its GPU is done, so that the stream of
    whoever takes it does not matter. Its memory lives as long as that is used, even if the array is donated."""

    def __dlpack__(
        self: Any, *, dl_device: tuple[enum.Enum, int] | None = None, copy: bool | None = None, **options: Any
    ) -> object:
        if not _is_on(self, platform):
            return export(self, dl_device=dl_device, copy=copy, **options)
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the array is on {self.__dlpack_device__()}, and was asked for on {dl_device}")
        if (order := self.format.layout.major_to_minor) != tuple(range(self.ndim)):
            raise BufferError(f"the array has its dimensions in the order {order}, expected row-major order")
        shared = jax.numpy.array(self, copy=True) if copy else self
        memory, driver = _memory_of(shared)
        return driver.lent(memory, shared.dtype, shared.shape)

    return __dlpack__


def _place_on_gpu(array: jax.Array) -> object:
    _, driver = _memory_of(array)
    kind, number = driver.dlpack_place
    return DLDeviceType(kind), number


def _memory_of(array: Any) -> tuple[Any, Any]:
    """Returns an array's memory on its GPU, and the driver. Raises an error for OpenCL, whose memory has no address."""
    from trivium.backends.plugin import accelerators

    return accelerators.memory_at(array.block_until_ready().unsafe_buffer_pointer())


def _is_on(array: jax.Array, platform: str) -> bool:
    """Whether an array is on one device of the platform."""
    devices = array.sharding.device_set
    return len(devices) == 1 and next(iter(devices)).platform == platform
