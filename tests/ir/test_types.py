"""Types and attributes are values: equal ones are the same object, whichever spelling was used first."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from trivium.ir.attributes import DenseArray, DenseElements
from trivium.ir.errors import Error
from trivium.ir.types import (
    F16,
    F32,
    I1,
    I8,
    I32,
    I64,
    TOKEN,
    UI8,
    Bounds,
    BufferType,
    ComplexType,
    FloatType,
    FunctionType,
    FutureType,
    IntegerType,
    PerAxisType,
    PerTensorType,
    SubChannelType,
    TensorType,
    TupleType,
    UnrankedTensorType,
    UnsignedStorageType,
    tensor,
)


@pytest.mark.parametrize("extent", [True, np.int64(1)], ids=repr)
def test_extents_become_plain_integers(extent) -> None:
    # Only this test uses this encoding, so that this spelling is the first one.
    made = TensorType((extent, 4099), F32, f"spelled {extent!r}")
    assert [type(one) for one in made.shape] == [int, int]
    assert made is TensorType((1, 4099), F32, f"spelled {extent!r}")


@pytest.mark.parametrize("extent", [2.0, "2"], ids=repr)
def test_extents_that_are_not_integers_are_refused(extent) -> None:
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


PER_TENSOR = PerTensorType(I8, F32, -128, 127, 0.5, -20)
PER_AXIS = PerAxisType(UI8, F32, 0, 200, 1, (0.5, 2.0), (0, 3))
PER_BLOCK = SubChannelType(UnsignedStorageType(8), F16, 0, 255, ((0, 1), (1, 2)), (2, 1), (0.1, 0.5), (0, 300))
TYPES = (PER_TENSOR, PER_AXIS, PER_BLOCK, tensor(2, None), UnrankedTensorType(PER_AXIS), BufferType((2,), F32))
TYPES += (TensorType((None,), F32, Bounds((4,))), FutureType((tensor(2),)), TupleType(()), FunctionType((I1,), ()))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_equal_types_are_one_object_even_after_pickling(kind) -> None:
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert hash(kind) == hash(pickle.loads(pickle.dumps(kind)))


def test_numbers_of_quantized_types_become_plain() -> None:
    made = PerTensorType(I8, F32, -128, 127, np.float32(2), np.int8(7))
    assert (type(made.scale), type(made.zero_point)) == (float, int)
    assert made is PerTensorType(I8, F32, -128, 127, 2, 7)
    assert str(made) == "!quant.uniform<i8:f32, 2.000000e+00:7>"


def test_unsigned_storage_differs_from_unsigned_integers() -> None:
    assert UnsignedStorageType(8) is not UI8
    assert UnsignedStorageType(8).dtype == UI8.dtype == np.uint8
    assert [str(kind) for kind in (UnsignedStorageType(8), UI8, I8)] == ["u8", "ui8", "i8"]


def test_parameters_have_a_dimension_for_each_axis() -> None:
    assert [np.shape(part) for part in PER_TENSOR.parameters((3, 2))] == [(), ()]
    scales, zero_points = PER_AXIS.parameters((3, 2))
    assert (scales.tolist(), zero_points.tolist()) == ([[0.5, 2.0]], [[0, 3]])
    scales, zero_points = PER_BLOCK.parameters((2, 2))
    assert scales.tolist() == [[float(np.float16(0.1))] * 2, [0.5] * 2]
    assert zero_points.tolist() == [[0, 0], [44, 44]]


WRONG = {
    "C1": lambda: PerTensorType(I64, F32, -128, 127, 0.5, 0),
    "C3": lambda: PerTensorType(I8, F32, -129, 127, 0.5, 0),
    "C4": lambda: PerTensorType(I8, I32, -128, 127, 0.5, 0),
    "C5": lambda: PerTensorType(I8, F32, -128, 127, -0.5, 0),
    "C6": lambda: PerTensorType(I8, F32, -128, 127, float("inf"), 0),
    "C9": lambda: PerAxisType(I8, F32, -128, 127, 0, (0.5, 0.1), (0,)),
    "C11": lambda: PerAxisType(I8, F32, -128, 127, -1, (0.5,), (0,)),
}


@pytest.mark.parametrize("label", WRONG)
def test_quantized_types_hold_their_constraints(label) -> None:
    with pytest.raises(Error, match=rf"\({label} of quantized types\)"):
        WRONG[label]()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorType((4,), F32, Bounds((4,))), "has the bound 4 for dimension 0, of static extent 4"),
        (lambda: TensorType((None,), F32, Bounds((4, None))), "has 2 bounds for 1 dimensions"),
        (lambda: TensorType([4], F32), "TensorType was given .* expected immutable values"),
        (lambda: TensorType((4,), tensor(2)), "has element type tensor<2xf32>, expected a number's type"),
        (lambda: TensorType((4,), "f32"), "has element type f32, expected a number's type"),
        (lambda: BufferType((4,), PER_TENSOR), "a buffer has element type !quant.uniform"),
        (lambda: UnrankedTensorType(TOKEN), "has element type !stablehlo.token"),
        (lambda: ComplexType(I8), "has numbers of i8, expected a float type"),
        (lambda: FloatType("f99"), "has the name 'f99', expected one of f4E2M1FN, "),
        (lambda: IntegerType(0), "has width 0"),
        (lambda: TupleType((1,)), "a tuple type has 1 among its types"),
        (lambda: FunctionType((I1,), ("f32",)), "a function type has 'f32' among its types"),
        (lambda: FutureType((I1,)), r"a future has types \(i1\), expected one tensor type or more"),
        (lambda: SubChannelType(I8, F32, -128, 127, ((0, 0),), (1,), (0.5,), (0,)), "has blocks of 0"),
        (lambda: IntegerType(7).dtype, "i7 has no NumPy dtype"),
    ],
)
def test_errors_of_types_say_what_is_wrong(make, message) -> None:
    with pytest.raises(Error, match=message):
        make()
