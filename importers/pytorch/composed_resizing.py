"""Resizing of images as products with matrices: with antialiasing, and of bytes, whose weights PyTorch rounds to
integers of 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._decomp.decompositions import get_scale_value, upsample_compute_output_size
from torch._prims_common import suggest_memory_format

from trivium.importers.pytorch.capture import is_ours
from trivium.importers.pytorch.composition import composed

# With antialiasing, the support of the filter grows with the factor by which an image shrinks


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _keys(x: Tensor) -> Tensor:
    """Keys' cubic filter with its parameter -0.5."""
    x = x.abs()
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_keys, 2.0)}
"""The filter, and how far it reaches."""


def _resizing(
    filter: str, extent: int, wanted: int, align_corners: bool, scale: float | None, dtype: torch.dtype
) -> Tensor:  # fmt: skip
    """Returns the matrix from elements (columns) to results (rows)."""
    function, reach = FILTERS[filter]
    step = (extent - 1) / (wanted - 1) if align_corners and wanted > 1 else 0.0
    if not align_corners:
        step = 1 / scale if scale else extent / wanted
    wide = max(step, 1.0)
    centre = (torch.arange(wanted, dtype=dtype) + 0.5).unsqueeze(1) * step
    places = torch.arange(extent, dtype=dtype)
    low, high = (centre - reach * wide + 0.5).trunc().clamp(min=0), (centre + reach * wide + 0.5).trunc()
    weights = torch.where((places >= low) & (places < high), function((places - centre + 0.5) / wide), 0.0)
    total = weights.sum(1, keepdim=True)
    return weights / torch.where(total == 0, 1, total)


MOST_BITS = 22
"""The most bits that weights of bytes have after the point."""


def _in_bytes(x: Tensor, weights: Tensor, d: int) -> Tensor:
    """Returns the product with a matrix along a dimension, as PyTorch rounds it: the weights are numbers of 16 bits,
    with as many of them after the point as the largest one leaves."""
    steps = 2.0 ** torch.arange(1, MOST_BITS + 1, dtype=torch.float64)
    bits = ((weights.max() * steps + 0.5).to(torch.int32) < 1 << 15).sum().to(torch.int32)
    whole = (weights * 2.0 ** bits.double() + 0.5 * weights.sign()).to(torch.int32)
    given = x.to(torch.int32)
    product = whole @ given if d == -2 else given @ whole.t()
    half = torch.ones_like(bits) << (bits - 1)
    return ((product + half) >> bits).clamp(0, 255).to(torch.uint8)


def _resized(
    x: Tensor, name: str, sizes: Sequence[int], align: bool, scales: Sequence[float | None], given: Sequence[int] | None
) -> Tensor:
    """Resizes the last two dimensions, or transposes that if the extents of the input are `given`."""
    pairs = zip(given or x.shape[-2:], sizes, scales, strict=True)
    # Of a single row or column, PyTorch's kernel repeats what the aligned corners give.
    if (
        (align and 1 in sizes)
        or not (x.is_floating_point() or x.dtype == torch.uint8)
        or any(scale and int(extent * scale) != wanted for extent, wanted, scale in pairs)
    ):
        return NotImplemented
    order = suggest_memory_format(x)
    if x.dtype == torch.uint8:
        for d in (-1, -2):
            x = _in_bytes(x, _resizing(name, x.shape[d], sizes[d], align, scales[d], torch.float64), d)
        return x.contiguous(memory_format=order)
    for d, wanted, scale, extent in zip((-2, -1), sizes, scales, given or x.shape[-2:], strict=True):
        matrix = _resizing(name, extent, wanted, align, scale, x.dtype)
        matrix = matrix if given is None else matrix.t()
        x = matrix @ x if d == -2 else x @ matrix.t()
    return x.contiguous(memory_format=order)


def _register(name: str) -> None:
    @composed(f"aten._upsample_{name}2d_aa.default")
    def forward(
        self: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        return _resized(self, name, output_size, align_corners, (scales_h, scales_w), None)

    @composed(f"aten._upsample_{name}2d_aa_backward.default")
    def backward(
        grad_output: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        return _resized(grad_output, name, output_size, align_corners, (scales_h, scales_w), input_size[-2:])


for _name in FILTERS:
    _register(_name)


# Bytes without antialiasing: a result depends on two elements, or on four


def _cubic(x: Tensor) -> Tensor:
    """Keys' cubic filter with its parameter -0.75, for distances up to 2."""
    near, far = (1.25 * x - 2.25) * x * x + 1, ((-0.75 * x + 3.75) * x - 6) * x + 3
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


INTERPOLATED = {"bilinear": (_triangle, 1), "bicubic": (_cubic, 2)}
"""The filter, and how many elements on each side of a place have a weight."""


def _interpolation(name: str, extent: int, wanted: int, align_corners: bool, scale: float | None) -> Tensor:
    """Returns the matrix from elements (columns) to results (rows). Beyond an edge, its element is repeated."""
    function, reach = INTERPOLATED[name]
    places = torch.arange(wanted, dtype=torch.float64)
    if align_corners:
        centre = places * ((extent - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        centre = (places + 0.5) * (1 / scale if scale else extent / wanted) - 0.5
    centre = centre if name == "bicubic" else centre.clamp(min=0)
    first = centre.floor().clamp(max=extent - 1)
    share = (centre - first).clamp(0, 1)
    matrix = torch.zeros(wanted, extent, dtype=torch.float64)
    for step in range(1 - reach, reach + 1):
        column = (first + step).clamp(0, extent - 1).to(torch.int64)
        matrix = matrix.scatter_add(1, column.unsqueeze(1), function((step - share).abs()).unsqueeze(1))
    return matrix


def _interpolated(
    x: Tensor, name: str, sizes: Sequence[int], align_corners: bool, scales: Sequence[float | None]
) -> Tensor:  # fmt: skip
    order = suggest_memory_format(x)
    for d in (-1, -2):
        x = _in_bytes(x, _interpolation(name, x.shape[d], sizes[d], align_corners, scales[d]), d)
    return x.contiguous(memory_format=order)


# PyTorch's own decompositions compute bytes as floats. They are kernels too, which come before any table.

Kernel = Callable[..., Tensor]


def _with_bytes(name: str, decomposed: Kernel, is_sized: bool) -> Kernel:
    """Returns a function that decomposes an op as we do if its operand has bytes. The scales are arguments of their own
    if the op always has a size; otherwise they are a list."""

    def resized(
        input: Tensor, output_size: Sequence[int] | None, align_corners: bool, *given: Any, **named: Any
    ) -> Tensor:  # fmt: skip
        if input.dtype != torch.uint8 or input.device.type != "cpu":
            return decomposed(input, output_size, align_corners, *given, **named)
        scales = [*given, *named.values()]
        if not is_sized:
            (factors,) = scales
            output_size = upsample_compute_output_size(input.size(), output_size, factors)
            scales = [get_scale_value(factors, d) for d in range(2)]
        assert output_size is not None
        return _interpolated(input, name, output_size, align_corners, [*scales, None, None][:2])

    return resized


def _for_us(ours: Kernel, theirs: Kernel) -> Kernel:
    return lambda *given, **named: (ours if is_ours() else theirs)(*given, **named)


def _decompose(name: str) -> None:
    for overload in ("default", "vec"):
        op = getattr(getattr(torch.ops.aten, f"upsample_{name}2d"), overload)
        is_sized = overload == "default"
        composed(str(op))(_with_bytes(name, decomposition_table[op], is_sized))
        for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
            if (kernel := op.py_kernels.get(key)) is not None:
                op.py_kernels[key] = _for_us(_with_bytes(name, kernel, is_sized), kernel)
        op._dispatch_cache.clear()


for _name in INTERPOLATED:
    _decompose(_name)
