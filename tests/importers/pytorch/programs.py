"""The programs for the tests of `.pt2` files, and the helpers that these share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trivium
from tests.limits import bounded

MODEL, WEIGHTS, CONSTANTS = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)


class Small(nn.Module):
    """A model with a parameter, a view of it, a buffer, a constant, arithmetic on sizes, branches and a structure."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.row = nn.Parameter(self.linear.weight[1])
        self.register_buffer("offset", torch.tensor([1.0, 2.0]))
        self.scale = torch.tensor([0.5, 2.0])

    def forward(self, x, pair, *, shift=None, times=2):
        with torch.no_grad():
            y = self.linear(x)
        y = torch.cond(y.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,))
        z = x[1:].reshape(-1) * (x.shape[0] + 1) ** 2
        return {"y": y * self.scale + self.offset, "rest": [z + shift, pair[0] * times, None], "row": self.row + 0}


@torch.library.custom_op("trivium_tests::foreign", mutates_args=())
def foreign(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("trivium_tests::foreign_pair", mutates_args=())
def foreign_pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * 2, x + 1


foreign.register_fake(torch.empty_like)
foreign_pair.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))


class Refused(nn.Module):
    """A model with an op that has no rule."""

    def forward(self, x):
        return foreign(x)


ARGUMENTS = (torch.arange(12.0).reshape(4, 3) - 5, [torch.ones(2), torch.zeros(1)])
KEYWORDS = {"shift": torch.tensor(3.0), "times": 3}


def refuse(path: Path, message: str, marker: Path | None = None) -> None:
    """Asserts that an archive raises an error, at little cost, and that nothing in it is run."""
    with bounded(), pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.load(path)
    assert marker is None or not marker.exists()


def graph_of(program: Any) -> Any:
    return program["graph_module"]["graph"]


def node_of(program: Any, op: str) -> Any:
    return next(node for node in graph_of(program)["nodes"] if op in node["target"])
