"""Types and attributes are values: whoever makes them first, in whatever spelling, equal ones are the same."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.ir.attributes import DenseArray, DenseElements
from trivium.ir.errors import Error
from trivium.ir.types import F32, TensorType, tensor


@pytest.mark.parametrize("extent", [True, np.int64(1)], ids=repr)
def test_extents_become_plain_integers(extent) -> None:
    # The encoding is of this test alone, so that this spelling is the first one.
    made = TensorType((extent, 4099), F32, f"spelled {extent!r}")
    assert [type(one) for one in made.shape] == [int, int]
    assert made is TensorType((1, 4099), F32, f"spelled {extent!r}")


@pytest.mark.parametrize("extent", [2.0, "2"], ids=repr)
def test_extents_that_are_no_integers_are_refused(extent) -> None:
    with pytest.raises(Error, match="expected an integer, or None where dynamic"):
        TensorType((extent, 4100), F32)


def test_elements_have_the_dtype_of_their_type() -> None:
    with pytest.raises(Error, match="have dtype float64, their type is tensor<2xf32>"):
        DenseElements(np.zeros(2), tensor(2))


def test_arrays_of_floats_are_compared_bit_for_bit() -> None:
    nan, zero, minus = (DenseArray(F32, (float(text),)) for text in ("nan", "0", "-0"))
    assert nan == DenseArray(F32, (float("nan"),))
    assert hash(nan) == hash(DenseArray(F32, (float("nan"),)))
    assert zero != minus
