"""Graphs of tensors in GPU memory; PyTorch calls the device cuda, even for AMD GPUs. Their programs run on that GPU,
directly on the memory of the tensors, on PyTorch's current stream. The functions at the top are all uses of
`torch.cuda`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import _empty_strided_cuda  # pyright: ignore[reportAttributeAccessIssue]

from trivium.backends.gpu.client import GpuLoadedExecutable
from trivium.executable import Executable
from trivium.importers.pytorch import ImportedGraph
from trivium.importers.pytorch.aliases import is_on_meta
from trivium.ir.errors import Error, ExecutionError
from trivium.torch.layouts import TensorLayouts
from trivium.torch.parameters import Parameters
from trivium.torch.variant import Variant

CPU = torch.device("cpu")


def place_of(tensor: torch.Tensor) -> torch.device:
    """Returns the device of a tensor."""
    return tensor.device


def stream_of(device: torch.device) -> int:
    """Returns the driver's handle of the stream that PyTorch uses for a device at present."""
    if torch.cuda.is_current_stream_capturing():
        raise ExecutionError(
            "PyTorch is capturing a CUDA graph, which cannot contain a Trivium program: Trivium captures its own graphs"
        )
    # What Inductor uses: `torch.cuda.current_stream` makes an object each time.
    return torch._C._cuda_getCurrentRawStream(device.index)


Result = tuple[Sequence[int], Sequence[int], torch.dtype]
"""The shape, strides and type of a result."""


def empty(results: Iterable[Result], device: torch.device) -> list[torch.Tensor]:
    """Returns memory of PyTorch's own allocator."""
    if torch._C._cuda_getDevice() == device.index:
        return [_empty_strided_cuda(*result) for result in results]
    return [torch.empty_strided(shape, strides, dtype=dtype, device=device) for shape, strides, dtype in results]


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Returns a copy on a device."""
    return tensor.to(device)


Named = Iterable[tuple[str, object]]
"""Tensors, and other objects, with what errors call them."""


def device_of(title: str, inputs: Named, results: Named = ()) -> torch.device:
    """Returns the device of a graph: that of all its tensors, except for scalars on the CPU that it is given, and those
    on `meta`, which have no elements. Raises an `Error` if they are on several, or on one that is neither a CPU nor a
    CUDA GPU."""
    found: dict[torch.device, str] = {}
    for name, tensor in inputs:
        if isinstance(tensor, torch.Tensor) and not is_on_meta(tensor) and (tensor.ndim or place_of(tensor) != CPU):
            found.setdefault(place_of(tensor), name)
    for name, tensor in results:
        if isinstance(tensor, torch.Tensor):
            found.setdefault(place_of(tensor), name)
    if len(found) > 1:
        places = ", ".join(f"{name} on {device}" for device, name in found.items())
        raise Error(f"{title} has {places}, expected all on one device, except for scalars on cpu that it is given")
    (device,) = found or (CPU,)
    if device.type not in ("cpu", "cuda"):
        raise Error(f"{title} has {found[device]} on {device}, expected cpu or cuda")
    return device


def options_for(device: torch.device, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of the compiler: on the CPU, a program has at most as many threads as PyTorch's ops have now;
    on a GPU, it may round to tf32 where they may."""
    if device == CPU:
        return {"threads": torch.get_num_threads(), **options}
    name = f"{'hip' if torch.version.hip else 'cuda'}:{device.index or 0}"
    if options.get("device", name) != name:
        raise Error(f"the option device has {options['device']!r}, expected {name!r}, where the tensors are")
    return {"tf32": torch.get_float32_matmul_precision() != "highest", **options, "device": name}


class CudaVariant(Variant):
    """A program whose tensors are on a GPU. It returns before the GPU is done, as PyTorch's own ops do."""

    def __init__(
        self,
        imported: ImportedGraph,
        executable: Executable,
        layouts: TensorLayouts,
        parameters: Parameters,
        kind: str,
        device: torch.device,
    ):
        super().__init__(imported, executable, layouts, parameters, kind)
        self.device = device

    def _executed(self, given: Sequence[torch.Tensor], sizes: tuple[int, ...]) -> list[torch.Tensor]:
        if self.results is None:
            made = super()._executed([moved(tensor, CPU) for tensor in given], sizes)
            return [moved(tensor, self.device) for tensor in made]
        assert isinstance(self.loaded, GpuLoadedExecutable), "programs of CUDA tensors are compiled for their device"
        alignment = self.loaded.device.client.driver.target.vector_bytes
        stream = stream_of(self.device)
        # Copies that are made for the program live until it is enqueued.
        placed = [self._placed(tensor, alignment) for tensor in given]
        made = self._with_replaced(empty(self.results, self.device), placed)
        self.loaded.execute_in(stream, [tensor.data_ptr() for tensor in itertools.chain(placed, made)])
        return made

    def _placed(self, tensor: torch.Tensor, alignment: int) -> torch.Tensor:
        """Returns a tensor on the device, at an address that the program can read: scalars may be on the CPU, and views
        of tensors may begin anywhere."""
        if place_of(tensor) != self.device:
            return moved(tensor, self.device)
        return tensor.clone() if tensor.data_ptr() % alignment else tensor
