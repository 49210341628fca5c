"""The reference interpreter: whole programs, captured values in regions, calls, tuples, and every error that a caller
can get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from trivium.ir.attributes import SymbolRef
from trivium.ir.builder import region
from trivium.ir.custom_calls import CUSTOM_CALLS, register_custom_call
from trivium.ir.errors import Error, ExecutionError, UnsupportedOpError
from trivium.ir.func import Call, Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.location import FileLocation
from trivium.ir.ops import (
    Add,
    BroadcastInDim,
    Compare,
    ComparisonDirection,
    Composite,
    Constant,
    CustomCall,
    GetTupleElement,
    If,
    Iota,
    Multiply,
    Reduce,
    Reshape,
    Tuple,
    While,
)
from trivium.ir.text import parse
from trivium.ir.types import BF16, C64, F32, F64, I1, I32, TOKEN, TensorType, TupleType, Type, tensor

SCALAR = tensor(of=F32)


def program(types: list[Type], body: Callable[..., Any], *others: Function) -> Module:
    module = Module.build(functions=[Function.build("main", types, body), *others])
    module.verify()
    return module


def constant(builder: Any, value: Any) -> Any:
    return builder.add(Constant(value=np.asarray(value)))


DOUBLE = program([tensor(3)], lambda b, x: b.add(Add(x, x)))


# Programs


def test_results_are_a_tuple() -> None:
    (result,) = evaluate(DOUBLE, np.array([1, 2, 3], np.float32))
    np.testing.assert_array_equal(result, np.array([2, 4, 6], np.float32))
    assert result.dtype == np.float32


def test_an_argument_may_be_returned_as_it_is() -> None:
    module = program([SCALAR, SCALAR], lambda b, x, y: [y, x, y])
    assert evaluate(module, 1.0, 2.0) == (2, 1, 2)


def test_regions_can_use_values_from_outside() -> None:
    def body(b, x, limit):
        step = b.add(Add(x, x))
        kinds = [SCALAR]

        def turn(inner, value):
            big = inner.add(Compare(value, step, comparison_direction=ComparisonDirection.GT))
            branch = If(
                big,
                region([], lambda deep: deep.add(Add(value, step))),
                region([], lambda deep: deep.add(Add(value, x))),
            )
            return inner.add(branch)

        def below(inner, value):
            return inner.add(Compare(value, limit, comparison_direction=ComparisonDirection.LT))

        return b.add(While([x], region(kinds, below), region(kinds, turn)))

    # 1, 2, 3, 5, 7, 9, 11
    assert evaluate(program([SCALAR, SCALAR], body), 1.0, 10.0) == (11,)


def test_a_reducer_may_use_a_captured_scalar() -> None:
    def body(b, x, factor):
        reducer = region([SCALAR] * 2, lambda inner, lhs, rhs: inner.add(Add(lhs, inner.add(Multiply(rhs, factor)))))
        return b.add(Reduce([x], [constant(b, np.float32(0))], (0,), reducer))

    # A reduction of one element: init + element * factor.
    assert evaluate(program([tensor(1), SCALAR], body), np.float32([5]), np.float32(3)) == (15,)


def test_a_reducer_may_use_a_captured_scalar_that_was_computed_outside() -> None:
    def body(b, x):
        zero = b.add(Reshape(constant(b, np.float32([0])), result=SCALAR))

        def keep(inner, lhs, rhs):
            return inner.add(Add(inner.add(Add(lhs, rhs)), zero))

        return b.add(Reduce([x], [zero], (1,), region([SCALAR] * 2, keep)))

    (result,) = evaluate(program([tensor(2, 3)], body), np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(result, np.float32([3, 3]))


def test_functions_call_functions() -> None:
    twice = Function.build("twice", [SCALAR], lambda b, x: b.add(Add(x, x)))
    main = lambda b, x: b.add(Call([x], SymbolRef("twice"), results_=[SCALAR]))  # noqa: E731
    module = program([SCALAR], main, twice)
    assert evaluate(module, 3.0) == (6,)
    assert evaluate(module, 4.0, function="twice") == (8,)


def test_composite_means_its_decomposition() -> None:
    decomposition = Function.build("twice", [SCALAR], lambda b, x: b.add(Add(x, x)))
    main = lambda b, x: b.add(  # noqa: E731
        Composite([x], name="tests.twice", decomposition=SymbolRef("twice"), composite_regions=[], results=[SCALAR])
    )
    assert evaluate(program([SCALAR], main, decomposition), 3.0) == (6,)


def test_tuples() -> None:
    inner = TupleType((SCALAR, tensor(of=I32)))

    def body(b, pair):
        first = b.add(GetTupleElement(pair, 0))
        return b.add(Tuple([b.add(Add(first, first)), pair])), b.add(GetTupleElement(pair, 1))

    module = program([inner], body)
    (doubled, (same, whole)), second = evaluate(module, (2.0, 3))
    assert (doubled, same, whole, second) == (4, 2, 3, 3)


def test_deep_programs_need_no_stack() -> None:
    def body(b, x):
        for _ in range(5000):
            x = b.add(Add(x, constant(b, np.float32(1))))
        return x

    assert evaluate(program([SCALAR], body), 0.0) == (5000,)


def test_values_too_large_for_memory_are_reported() -> None:
    module = program([], lambda b: b.add(Iota(0, result=tensor(10**12))))
    with pytest.raises(ExecutionError, match=r"its results have 4000000000000 bytes .* the available memory"):
        evaluate(module)


def test_dynamic_dimensions_accept_any_extent() -> None:
    module = program([tensor(None, 2)], lambda b, x: b.add(Add(x, x)))
    (result,) = evaluate(module, np.ones((5, 2), np.float32))
    assert result.shape == (5, 2)


def test_a_token_is_empty() -> None:
    assert evaluate(program([TOKEN, SCALAR], lambda b, token, x: [token, x]), None, 1.0) == (None, 1)


# Arguments


class Exported:
    """An object that supports only DLPack."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("value", [Exported(np.ones(3, np.float32)), np.ones(6, np.float32)[::2]])
def test_anything_that_numpy_can_read_is_an_argument(value: Any) -> None:
    np.testing.assert_array_equal(evaluate(DOUBLE, value)[0], np.full(3, 2, np.float32))


@pytest.mark.parametrize(
    ("kind", "value"), [(F32, 2), (F32, 2.5), (F64, 2.5), (I32, -7), (I1, True), (C64, 1j), (BF16, 0.5)]
)
def test_a_number_takes_the_type_of_the_argument(kind: Any, value: Any) -> None:
    (result,) = evaluate(program([tensor(of=kind)], lambda b, x: [x]), value)
    assert result.dtype == kind.dtype
    assert result == value


@pytest.mark.parametrize(
    ("kind", "value", "has"),
    [
        (tensor(3), np.zeros(3), "dtype float64, expected float32"),
        (tensor(3), np.zeros(4, np.float32), r"shape \(4,\), expected \(3,\)"),
        (tensor(None, 3), np.zeros((2, 4), np.float32), r"shape \(2, 4\), expected \(None, 3\)"),
        (tensor(3, of=BF16), np.zeros(3, np.float16), "dtype float16, expected bfloat16"),
        (tensor(of=I32), 1.5, "dtype float64, expected int32"),
        (tensor(of=F32), "text", "dtype <U4, expected float32"),
        (tensor(of=I32), 2**40, "has 1099511627776, which int32 cannot hold"),
        (tensor(3), [[1], [2, 3]], "has list, which NumPy cannot read"),
        (TupleType((SCALAR,)), np.float32(1), "expected a tuple of 1 values"),
        (TupleType((SCALAR, SCALAR)), (1.0, np.float64(2)), "main, element 1 has dtype float64"),
    ],
)
def test_a_wrong_argument_is_refused(kind: Any, value: Any, has: str) -> None:
    module = program([SCALAR, kind], lambda b, x, y: [y])
    with pytest.raises(ExecutionError, match=has) as caught:
        evaluate(module, 1.0, value)
    assert "argument 1 of main" in str(caught.value)


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(ExecutionError, match="main was given 2 arguments, expected 1"):
        evaluate(DOUBLE, 1, 2)


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(Error, match="no function 'other', expected one of main"):
        evaluate(DOUBLE, function="other")


# Errors inside


def test_an_error_has_the_op_its_place_and_its_function() -> None:
    place = FileLocation("model.py", 41)
    module = program(
        [SCALAR], lambda b, x: b.add(CustomCall([x], call_target_name="nowhere", results=[SCALAR], location=place))
    )
    with pytest.raises(UnsupportedOpError) as caught:
        evaluate(module, 1.0)
    text = str(caught.value)
    assert "nowhere" in text
    assert "in:    %" in text
    assert "from:  model.py:41" in text
    assert "while: evaluating 'main'" in text
    assert [unsupported.name for unsupported in caught.value.ops] == ["custom_call @nowhere"]


def test_endless_calls_are_refused() -> None:
    loop = Function.build("loop", [SCALAR], lambda b, x: b.add(Call([x], SymbolRef("loop"), results_=[SCALAR])))
    module = Module.build(functions=[loop])
    with pytest.raises(ExecutionError, match="no recursion"):
        evaluate(module, 1.0)


# Custom calls


@pytest.fixture
def target():
    """The name of a custom call that exists for one test."""
    yield "tests.target"
    CUSTOM_CALLS.pop("tests.target", None)


def custom(target: str, **attributes: Any) -> Module:
    return program(
        [tensor(2)], lambda b, x: b.add(CustomCall([x], call_target_name=target, results=[tensor(2)], **attributes))
    )


def test_a_custom_call_has_its_registered_meaning(target: str) -> None:
    register_custom_call(target, evaluate=lambda op, x: x * np.float32(op.backend_config))
    module = custom(target, backend_config="3")
    np.testing.assert_array_equal(evaluate(module, np.float32([1, 2]))[0], np.float32([3, 6]))


def test_a_custom_call_must_give_the_type_of_its_result(target: str) -> None:
    register_custom_call(target, evaluate=lambda op, x: x.astype(np.float64))
    with pytest.raises(ExecutionError, match="returned dtype float64, its result has type tensor<2xf32>"):
        evaluate(custom(target), np.float32([1, 2]))


def test_a_custom_call_must_give_as_many_results_as_it_has(target: str) -> None:
    register_custom_call(target, evaluate=lambda op, x: (x, x))
    with pytest.raises(ExecutionError, match="returned 2 results, expected 1"):
        evaluate(custom(target), np.float32([1, 2]))


def test_exceptions_of_a_custom_call_are_reported_with_its_location(target: str) -> None:
    def broken(op, x):
        raise ValueError("out of luck")

    register_custom_call(target, evaluate=broken)
    with pytest.raises(ExecutionError, match="ValueError: out of luck") as caught:
        evaluate(custom(target), np.float32([1, 2]))
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_custom_call_is_registered_once(target: str) -> None:
    register_custom_call(target, evaluate=lambda op, x: x)
    with pytest.raises(Error, match="registered already"):
        register_custom_call(target, evaluate=lambda op, x: x)
    assert register_custom_call(target, effects=True, replace=True).effects


def test_effects_of_custom_calls(target: str) -> None:
    def only_op(**attributes: Any) -> CustomCall:
        return custom(target, **attributes).main.body.block.first

    assert only_op().is_pure
    assert not only_op(has_side_effect=True).is_pure
    register_custom_call(target, effects=True)
    assert not only_op().is_pure


def test_narrow_types_keep_their_dtype() -> None:
    kind = TensorType((2,), BF16)
    module = program(
        [kind], lambda b, x: b.add(Add(x, b.add(BroadcastInDim(constant(b, ml_dtypes.bfloat16(1)), (), result=kind))))
    )
    (result,) = evaluate(module, np.array([1, 256], ml_dtypes.bfloat16))
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(np.float32), [2, 256])


# Rounding


def test_narrow_sums_are_rounded_once() -> None:
    """If the sum were rounded to 32 bits first, it would be halfway between two numbers, and then be rounded to the
    even one."""
    text = """func.func @main(%0: tensor<2xbf16>, %1: tensor<2xbf16>) -> tensor<bf16> {
      %2 = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<bf16>
      return %2 : tensor<bf16>
    }"""
    lhs, rhs = (np.array(values).astype(ml_dtypes.bfloat16) for values in ([7 / 16, 2**-20], [37 / 16, -(2**-20)]))
    (result,) = evaluate(parse(text), lhs, rhs)
    assert float(result) == 258 / 256


def test_functions_of_32_bits_are_rounded_once() -> None:
    """The 32-bit results of the math library depend on the host; the nearest float is the same on every host."""
    line = "%1 = stablehlo.{} %0 : tensor<1000xf32> return %1 : tensor<1000xf32>"
    text = f"func.func @main(%0: tensor<1000xf32>) -> tensor<1000xf32> {{{{ {line} }}}}"
    values = np.random.default_rng(0).uniform(0.1, 3, 1000).astype(np.float32)
    for op, function in {"sine": np.sin, "exponential": np.exp, "log": np.log, "tanh": np.tanh}.items():
        (result,) = evaluate(parse(text.format(op)), values)
        np.testing.assert_array_equal(result, function(values.astype(np.float64)).astype(np.float32), op)


# Dynamic shapes


@pytest.mark.parametrize(
    ("line", "shapes", "message"),
    [
        ("add %a, %b : tensor<?xf32>", (4, 1), r"add: \[C1\] rhs has type tensor<1xf32>, lhs has tensor<4xf32>"),
        ("clamp %a, %b, %a : tensor<?xf32>", (1, 5), r"clamp: \[C1\] min has type tensor<1xf32>"),
        (
            '"stablehlo.slice"(%a) <{start_indices = array<i64: 1>, limit_indices = array<i64: 5>, '
            "strides = array<i64: 1>}> : (tensor<?xf32>) -> tensor<?xf32>",
            (3, 3),
            r"slice: \[C3\] limit_indices\[0\] has 5, expected at most 3",
        ),
    ],
)
def test_extents_that_do_not_fit_are_reported(line: str, shapes: tuple[int, int], message: str) -> None:
    """For types with `?`, the constraints of an op are checked again when it runs."""
    line = line if line.startswith('"') else f"stablehlo.{line}"
    text = "func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {"
    module = parse(f"{text} %0 = {line} return %0 : tensor<?xf32> }}")
    module.verify()
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(Error, match=message):
        evaluate(module, *arrays)


def test_a_computed_padding_may_not_take_more_than_there_is() -> None:
    module = parse(
        """func.func @main(%0: tensor<4xf32>, %1: tensor<1xi64>) -> tensor<?xf32> {
      %2 = stablehlo.constant dense<0.0> : tensor<f32>
      %3 = stablehlo.constant dense<0> : tensor<1xi64>
      %4 = stablehlo.dynamic_pad %0, %2, %1, %1, %3
        : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
      return %4 : tensor<?xf32>
    }"""
    )
    array = np.float32([1, 2, 3, 4])
    np.testing.assert_array_equal(evaluate(module, array, np.array([-1]))[0], [2, 3])
    with pytest.raises(Error, match=r"dynamic_pad: \[C4\] dimension 0 has extent -2 after padding"):
        evaluate(module, array, np.array([-3]))


# Random numbers


@pytest.mark.parametrize(("kind", "start", "end"), [("bf16", 1, 1 + 2**-7), ("f32", 1, 1 + 2**-23), ("i8", -1, 0)])
def test_drawn_numbers_are_less_than_the_end(kind: str, start: float, end: float) -> None:
    """Also if the start is the only number in the range."""
    text = f"""func.func @main(%0: tensor<{kind}>, %1: tensor<{kind}>) -> tensor<100x{kind}> {{
      %2 = stablehlo.constant dense<100> : tensor<1xi64>
      %3 = stablehlo.rng %0, %1, %2, distribution = UNIFORM
        : (tensor<{kind}>, tensor<{kind}>, tensor<1xi64>) -> tensor<100x{kind}>
      return %3 : tensor<100x{kind}>
    }}"""
    module = parse(text)
    (drawn,) = evaluate(
        module, *(np.array(bound).astype(module.main.arguments[0].type.dtype) for bound in (start, end))
    )
    assert set(drawn.astype(np.float64)) == {start}


def test_random_bits_of_narrow_elements_fill_no_more_than_these() -> None:
    text = """func.func @main(%0: tensor<2xui64>) -> tensor<64xi4> {
      %1, %2 = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY
        : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xi4>)
      return %2 : tensor<64xi4>
    }"""
    (bits,) = evaluate(parse(text), np.array([1, 2], np.uint64))
    assert set(bits.view(np.uint8)) == set(range(16))


def test_exceptions_inside_an_op_are_reported_with_its_location() -> None:
    """The program is not verified: the body of its reduction returns a tuple."""
    pair = "tuple<tensor<f32>, tensor<f32>>"
    module = parse(f"""func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<2xf32> {{
      %0 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 3>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = "stablehlo.tuple"(%a, %b) : (tensor<f32>, tensor<f32>) -> {pair}
          "stablehlo.return"(%1) : ({pair}) -> ()
      }}) : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }}""")
    with pytest.raises(ExecutionError, match="reduce_window"):
        evaluate(module, np.ones(4, np.float32), np.float32(0))
