"""Parameters and buffers that are constants of a program (the option `freeze`), and how their changes are noticed."""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Iterable, Sequence
from weakref import WeakSet

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

logger = logging.getLogger("trivium.torch")

_version = operator.attrgetter("_version")


class Parameters:
    """Tensors that a program has as constants, as they were when it was compiled."""

    def __init__(self, inputs: Sequence[object], indices: Sequence[int]):
        # Not weakly: another tensor could get the address, and the version, of one that is gone.
        tensors = {index: x for index in indices if isinstance(x := inputs[index], torch.Tensor)}
        self.indices, self.tensors = list(tensors), list(tensors.values())
        self.states = _states(self.tensors)
        self.updated: int | None = None
        if tensors:
            _watch_fused_optimizers()
            _alive.add(self)

    def changed(self, inputs: Sequence[object]) -> int | None:
        """Returns the index of a tensor that is not the same, or was changed in place; None if there is none. Every
        call asks this about all parameters: hence whole lists."""
        given = [inputs[index] for index in self.indices]
        states = _states(self.tensors)
        if states == self.states and all(map(operator.is_, given, self.tensors)):
            return self.updated
        found = zip(self.indices, given, self.tensors, *states, *self.states, strict=True)
        return next(i for i, x, y, a, b, c, d in found if x is not y or (a, b) != (c, d))

    def notice(self, updated: set[int]) -> None:
        """Takes note of tensors, by identity, that an optimizer has changed."""
        pairs = zip(self.indices, self.tensors, strict=True)
        self.updated = next((index for index, x in pairs if id(x) in updated), self.updated)


_alive: WeakSet[Parameters] = WeakSet()


def freezable(inputs: Sequence[object], indices: Iterable[int]) -> list[int]:
    """Returns those of the inputs, by index, whose changes can be noticed: tensors of inference mode do not count
    theirs."""
    indices = list(indices)
    found = [index for index in indices if not (isinstance(x := inputs[index], torch.Tensor) and x.is_inference())]
    if len(found) < len(indices):
        _report_inference_mode()
    return found


@functools.cache
def _report_inference_mode() -> None:
    logger.warning(
        "parameters that were made in torch.inference_mode are not frozen: PyTorch does not count their changes"
    )


@functools.cache
def _watch_fused_optimizers() -> None:
    """PyTorch's counters of changes do not see what fused optimizers change."""
    register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer: Optimizer, args: object, kwargs: object) -> None:
    updated = {id(x) for group in optimizer.param_groups if group.get("fused") for x in group["params"]}
    for parameters in list(_alive) if updated else ():
        parameters.notice(updated)


def _states(tensors: Sequence[torch.Tensor]) -> tuple[list[int], list[int]]:
    """Returns what differs after a change of the memory, and after one in place."""
    return list(map(torch.Tensor.data_ptr, tensors)), list(map(_version, tensors))
