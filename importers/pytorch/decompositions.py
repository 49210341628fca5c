"""Ops that PyTorch itself can express in others: those without a rule of ours are decomposed before they reach one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload

from trivium.importers.pytorch.context import rule


@cache
def decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """PyTorch's decompositions of the ops that have no rule."""
    known = {**decomposition_table, **core_aten_decompositions()}
    return {op: function for op, function in known.items() if isinstance(op, OpOverload) and str(op) not in rule}


@cache
def export_decompositions() -> dict[Any, Callable[..., Any]]:
    """The same for exported programs, where composite ops are still whole."""
    composite = torch.export.default_decompositions()
    return {**decompositions(), **{op: composite[op] for op in list(composite) if str(op) not in rule}}
