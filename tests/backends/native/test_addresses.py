"""Where Python objects have their memory, as native code asks them."""

import ml_dtypes
import numpy as np
import pytest

from trivium.backends import native


def test_addresses_of_arrays() -> None:
    arrays = [np.ones(3), np.ones((2, 3), ml_dtypes.bfloat16), np.zeros((2, 0), np.int8), np.array(1j)]
    arrays.append(arrays[0][1:])
    assert native.addresses(arrays) == [array.ctypes.data for array in arrays]
    assert native.addresses([]) == []


def test_an_object_without_memory() -> None:
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'int'"):
        native.addresses([np.ones(3), 3])
    with pytest.raises(ValueError, match="not C-contiguous"):
        native.addresses([np.ones((2, 3)).T])


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex128", "uint8"])
def test_addresses_of_tensors(dtype: str) -> None:
    import tensorflow as tf

    tensors = [tf.cast(tf.ones(shape), dtype) for shape in ((3, 2), (5,))]
    assert native.addresses(tensors) == [np.asarray(tensor).ctypes.data for tensor in tensors]
    scalar = tf.cast(tf.ones(()), dtype)
    assert native.addresses([scalar]) == native.addresses([scalar])
