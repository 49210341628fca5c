"""The contribution of each framework to the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from trivium.ir.func import Module

Advance = Callable[[], None]
"""Called after each training step."""

Predict = Callable[[], np.ndarray]


@dataclass
class Contestant:
    """A trained model: its program for the test images, and the framework's own ways of running it on them.

    `eager` and `compiled` return logits (count, 10); `compiled` is `None` if the framework's compiler cannot run here.
    """

    framework: str
    module: Module
    eager: Predict
    compiled: Predict | None = None
    compiler: str = ""
    notes: list[str] = field(default_factory=list)
