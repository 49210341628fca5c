"""Whether TensorFlow traces for Trivium: calls of compiled functions then become parts of the program around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import tensorflow as tf

OWN = tf.function
"""TensorFlow's own function, which traces, also where a program replaces `tf.function` by Trivium's, for libraries."""

_TRACING: ContextVar[bool] = ContextVar("tracing", default=False)


def is_tracing() -> bool:
    """Whether the graph that is being traced will be compiled by Trivium."""
    return _TRACING.get()


@contextmanager
def tracing() -> Iterator[None]:
    """Says so inside the `with` statement."""
    token = _TRACING.set(True)
    try:
        yield
    finally:
        _TRACING.reset(token)
