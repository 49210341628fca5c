"""Ops on lists of tensors (`_foreach_add`), with which optimizers work and gradients are clipped, as the ops on each of
the tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed

PREFIX = "aten::_foreach_"

OTHERWISE: dict[str, Callable[..., Tensor]] = {
    "addcdiv": lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
    "addcdiv.Tensor": lambda x, a, b, factor: x + factor * (a / b),
    "addcmul": lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value),
    "addcmul.Tensor": lambda x, a, b, factor: x + factor * (a * b),
    "clone": lambda x, memory_format=None: x.clone(),
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand_as(x).clone(),
    "maximum.Scalar": torch.clamp_min,
    "maximum.ScalarList": torch.clamp_min,
    "minimum.Scalar": torch.clamp_max,
    "minimum.ScalarList": torch.clamp_max,
    "norm.Scalar": lambda x, order=2, dtype=None: torch.linalg.vector_norm(x, order, dtype=dtype),
    "powsum.Scalar": lambda x, order=2, dtype=None: x.to(dtype or x.dtype).abs().pow(order).sum(),
    "zero": torch.zeros_like,
}
"""The ops whose name, or whose order of arguments, is not that of a function on one tensor."""


def _on_each(function: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """Returns a function on lists. What is no list, and is not one number for each tensor, is the same for all."""

    def on_lists(*args: Any, **kwargs: Any) -> list[Tensor]:
        count = next(len(given) for given in args if isinstance(given, list | tuple))
        return [function(*(_entry(given, index) for given in args), **kwargs) for index in range(count)]

    return on_lists


def _entry(given: Tensor | Sequence[Any] | object, index: int) -> Any:
    is_list = isinstance(given, list | tuple) or (isinstance(given, Tensor) and given.dim() == 1)
    return given[index] if is_list else given  # type: ignore[index]


def _register() -> None:
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix(PREFIX)
        if name == schema.name or name.endswith("_") or schema.overload_name.endswith("out"):
            continue
        overload = schema.overload_name or "default"
        function = OTHERWISE.get(f"{name}.{overload}") or OTHERWISE.get(name) or getattr(torch, name)
        composed(f"aten._foreach_{name}.{overload}")(_on_each(function))


_register()
