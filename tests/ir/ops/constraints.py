"""What the tests of constraints share: values of any type, and the expectation of a labelled error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trivium.ir.core import Value
from trivium.ir.errors import VerificationError
from trivium.ir.types import F32, Type, tensor


def value(*shape: int | None, of: Type = F32) -> Value:
    """A value of tensor type."""
    return Value(tensor(*shape, of=of))


@contextmanager
def breaks(label: str) -> Iterator[None]:
    """Demands a `VerificationError` of this label, whose message begins with the op and says what there is."""
    with pytest.raises(VerificationError) as caught:
        yield
    assert caught.value.label == label, str(caught.value)
    assert f": [{label}] " in caught.value.message
