"""The elements of tensors in text: every element type, splats, lists and bytes."""

import ml_dtypes
import numpy as np
import pytest

from trivium.ir.attributes import DenseElements
from trivium.ir.errors import ParseError
from trivium.ir.numerals import float_text
from trivium.ir.text import parse, print_module
from trivium.ir.types import BF16, F16, F32, F64, FLOATS, dtype_of, tensor


def elements_of(text: str) -> DenseElements:
    return parse(f"module attributes {{x = {text}}} {{}}").extra["x"]


def text_of(elements: DenseElements) -> str:
    module = parse("module {}")
    module.extra["x"] = elements
    return print_module(module).removeprefix("module attributes {x = ").removesuffix("} {\n}\n")


@pytest.mark.parametrize(
    "text",
    [
        "dense<[1, -2]> : tensor<2xi32>",
        "dense<[255, 0]> : tensor<2xui8>",
        "dense<[7, -8]> : tensor<2xi4>",
        "dense<[18446744073709551615, 0]> : tensor<2xui64>",
        "dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>",
        "dense<[true, false]> : tensor<2xi1>",
        "dense<true> : tensor<3xi1>",
        "dense<5> : tensor<i32>",
        "dense<> : tensor<0xf32>",
        "dense<1.500000e+00> : tensor<2x0xf32>",
        "dense<> : tensor<2x0xi1>",
        "dense<[[1.000000e+00], [2.000000e+00]]> : tensor<2x1xf32>",
        "dense<[1.000000e-01, 0x7FC00000, 0xFF800000, -0.000000e+00]> : tensor<4xf32>",
        "dense<[0x7E00, 0x7C00, 6.550400e+04]> : tensor<3xf16>",
        "dense<[0x7FF0000000000000, 2.2204460492503131E-16]> : tensor<2xf64>",
        "dense<[0x7F, 4.480000e+02]> : tensor<2xf8E4M3FN>",
        "dense<(1.000000e+00,-2.500000e+00)> : tensor<2xcomplex<f32>>",
        "dense<[(0.000000e+00,1.000000e+00), (0x7FF8000000000000,0.000000e+00)]> : tensor<2xcomplex<f64>>",
        "dense<3> : tensor<4xindex>",
    ],
)
def test_elements(text):
    assert text_of(elements_of(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('dense<"0x01000000FFFFFFFF"> : tensor<2xi32>', [1, -1]),
        ('dense<"0x0000803F"> : tensor<2xf32>', [1.0, 1.0]),
        ('dense<"0x0001"> : tensor<2xi1>', [False, True]),
        ('dense<"0x0502"> : tensor<10xi1>', [True, False, True, *[False] * 6, True]),
        ('dense<"0x803F0000"> : tensor<2xbf16>', [1.0, 0.0]),
        ('dense<"0x01"> : tensor<3xi1>', [True, True, True]),
        ('dense<"0xFF01"> : tensor<2xi4>', [-1, 1]),
        ("dense<[0xFF, 0x0]> : tensor<2xi8>", [-1, 0]),
        ("dense<[ 1 , // one\n 2 ]> : tensor<2xi8>", [1, 2]),
        ("dense<0x3F800000> : tensor<1xf32>", [1.0]),
        ("dense<1> : tensor<1xi1>", [True]),
    ],
)
def test_other_spellings(text, expected):
    assert elements_of(text).array.tolist() == expected


@pytest.mark.parametrize("kind", FLOATS.values(), ids=str)
def test_every_float_of_a_type_reads_back(kind):
    if kind.name == "tf32":
        return
    dtype = dtype_of(kind)
    if dtype.itemsize == 1:
        values = np.arange(256, dtype=np.uint8).view(dtype)
        values = values[: 1 << ml_dtypes.finfo(dtype).bits]
    else:
        bits = np.random.default_rng(0).integers(0, 1 << 63, 300, dtype=np.uint64)
        values = bits.astype(f"u{dtype.itemsize}").view(dtype)
    for value in values:
        read = elements_of(f"dense<{float_text(value, kind)}> : tensor<{kind}>").array
        assert read.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.1, F32, "1.000000e-01"),
        (0.1, F64, "1.000000e-01"),
        (np.pi, F32, "3.14159274"),
        (np.pi, F64, "3.1415926535897931"),
        (1e-8 / 3, F32, "3.33333339E-9"),
        (3.4028235e38, F32, "3.40282347E+38"),
        (16777216.0, F32, "0x4B800000"),
        (1234.5, F16, "1.234000e+03"),
        (1.0 / 3, BF16, "3.339840e-01"),
        (-0.0, F32, "-0.000000e+00"),
    ],
)
def test_floats_are_written_as_mlir_does(value, kind, text):
    assert float_text(value, kind) == text


def test_large_tensors_are_bytes_and_splats_stay_small():
    array = np.arange(101, dtype=np.int32)
    text = text_of(DenseElements(array))
    assert text.startswith('dense<"0x00000000010000000200')
    np.testing.assert_array_equal(elements_of(text).array, array)
    # A splat is a view of one element, so a tensor that would not fit into memory takes none.
    huge = elements_of("dense<1.0> : tensor<1000000x1000000xf32>")
    assert huge.is_splat
    assert text_of(huge) == "dense<1.000000e+00> : tensor<1000000x1000000xf32>"


def test_a_splat_of_equal_elements_is_found():
    assert text_of(DenseElements(np.ones((2, 2), np.float32))) == "dense<1.000000e+00> : tensor<2x2xf32>"
    assert text_of(DenseElements(np.array([0.0, -0.0]))) == "dense<[0.000000e+00, -0.000000e+00]> : tensor<2xf64>"


def test_elements_of_less_than_a_byte_have_no_other_bits():
    for kind, many, few in (
        ("i4", "0xFFF1", "0x0F01"),
        ("f4E2M1FN", "0x1F21", "0x0F01"),
        ("f6E2M3FN", "0xC141", "0x0101"),
    ):
        assert elements_of(f'dense<"{many}"> : tensor<2x{kind}>') == elements_of(f'dense<"{few}"> : tensor<2x{kind}>')


def test_tensors_that_exceed_memory_are_not_allocated():
    for text in ("dense<> : tensor<1000000000000xf32>", "dense<[1.0]> : tensor<1000000000000xf32>"):
        with pytest.raises(ParseError):
            elements_of(text)


def test_transposed_arrays():
    array = np.arange(200, dtype=np.int16).reshape(20, 10).T
    np.testing.assert_array_equal(elements_of(text_of(DenseElements(array))).array, array)
    assert elements_of(text_of(DenseElements(array))).type is tensor(10, 20, of=np.int16)
