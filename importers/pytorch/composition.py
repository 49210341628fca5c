"""The table of ops that we express in terms of others, in PyTorch's own language. They are replaced while PyTorch
captures a program, before rules are looked up."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

from trivium.ir.errors import Error

Function = TypeVar("Function", bound=Callable[..., Any])

COMPOSED: dict[OpOverload, Callable[..., Any]] = {}
"""The functions by op; their parameters are those of the op's schema."""


def composed(*names: str) -> Callable[[Function], Function]:
    """Registers what ops mean: `@composed("aten.linalg_inv_ex.default")`."""

    def register(function: Function) -> Function:
        for name in names:
            op = attrgetter(name)(torch.ops)
            if op in COMPOSED:
                raise Error(f"PyTorch op {name} is composed twice")
            COMPOSED[op] = function
        return function

    return register
