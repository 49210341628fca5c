"""Programs with dynamic shapes, compiled for each new combination of shapes, and of values that extents follow from."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import trivium
from trivium.ir.text import parse

F32 = np.float32


def compiled(body: str, signature: str) -> tuple[Any, Callable[..., Any]]:
    module = parse(f"func.func @main{signature} {{\n{body}\n}}")
    run = trivium.compile(module)

    def both(*arguments):
        results = run(*arguments)
        for one, other in zip(results, trivium.evaluate(module, *arguments), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(one, other, rtol=1e-6)
        return results

    return run, both


def test_each_shape_is_compiled_once(caplog):
    run, both = compiled(
        "%0 = stablehlo.add %x, %x : tensor<?x3xf32>\nreturn %0 : tensor<?x3xf32>",
        "(%x: tensor<?x3xf32>) -> tensor<?x3xf32>",
    )
    with caplog.at_level("INFO", "trivium.executable"):
        for extent in (2, 5, 2):
            both(np.ones((extent, 3), F32))
    assert [record.args[1] for record in caplog.records] == [((2, 3),), ((5, 3),)]
    assert run.specialize(np.ones((2, 3), F32)).loaded is run.specialize(np.zeros((2, 3), F32)).loaded
    assert "tensor<2x3xf32>" in run.stage("graph")
    assert str(run.signature) == "(tensor<?x3xf32>) -> (tensor<?x3xf32>)"


def test_stages_before_the_first_call():
    run, _ = compiled("return %x : tensor<?xf32>", "(%x: tensor<?xf32>) -> tensor<?xf32>")
    with pytest.raises(trivium.Error, match="main has dynamic shapes and is compiled when it is called"):
        run.stage("llvm")


def test_extents_from_the_values_of_arguments():
    _, both = compiled(
        """%0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
        return %1 : tensor<?xf32>""",
        "(%n: tensor<i32>) -> tensor<?xf32>",
    )
    for extent in (0, 1, 7):
        assert both(np.int32(extent))[0].shape == (extent,)


def test_extents_of_type_index():
    shape = "tensor<2xindex>"
    _, both = compiled(
        f"%0 = stablehlo.dynamic_iota %n, dim = 1 : ({shape}) -> tensor<?x?xf32>\nreturn %0 : tensor<?x?xf32>",
        f"(%n: {shape}) -> tensor<?x?xf32>",
    )
    assert both(np.array([2, 3], np.int64))[0].tolist() == [[0, 1, 2]] * 2


def test_extents_from_widths():
    _, both = compiled(
        """%0 = stablehlo.bitcast_convert %x : (tensor<?xf32>) -> tensor<?x?xi8>
        %1 = stablehlo.bitcast_convert %0 : (tensor<?x?xi8>) -> tensor<?xi32>
        return %0, %1 : tensor<?x?xi8>, tensor<?xi32>""",
        "(%x: tensor<?xf32>) -> (tensor<?x?xi8>, tensor<?xi32>)",
    )
    assert [array.shape for array in both(np.ones(3, F32))] == [(3, 4), (3,)]


def test_the_state_of_random_bits_keeps_its_size():
    types = "tensor<?xui64>, tensor<3xui32>"
    draw = f"stablehlo.rng_bit_generator %x, algorithm = THREE_FRY : (tensor<2xui64>) -> ({types})"
    body = f"%0:2 = {draw}\nreturn %0#0, %0#1 : {types}"
    _, both = compiled(body, f"(%x: tensor<2xui64>) -> ({types})")
    assert both(np.array([1, 2], np.uint64))[0].shape == (2,)


def test_shapes_inside_loops_and_branches():
    _, both = compiled(
        """%zero = stablehlo.constant dense<0> : tensor<i32>
        %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32>
        cond {
          %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
          %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.add %i, %one : tensor<i32>
          %odd = stablehlo.and %i, %one : tensor<i32>
          %b = "stablehlo.case"(%odd) ({
            %t = stablehlo.add %a, %a : tensor<?xf32>
            stablehlo.return %t : tensor<?xf32>
          }, {
            %t = stablehlo.negate %a : tensor<?xf32>
            stablehlo.return %t : tensor<?xf32>
          }) : (tensor<i32>) -> tensor<?xf32>
          stablehlo.return %j, %b : tensor<i32>, tensor<?xf32>
        }
        return %r#1 : tensor<?xf32>""",
        "(%x: tensor<?xf32>) -> tensor<?xf32>",
    )
    for extent in (1, 4):
        both(np.arange(extent, dtype=F32))


def test_a_loop_that_changes_its_shape_is_refused():
    run, _ = compiled(
        """%r = stablehlo.while(%a = %x) : tensor<?xf32>
        cond {
          %p = stablehlo.constant dense<false> : tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %b = stablehlo.concatenate %a, %a, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
          stablehlo.return %b : tensor<?xf32>
        }
        return %r : tensor<?xf32>""",
        "(%x: tensor<?xf32>) -> tensor<?xf32>",
    )
    with pytest.raises(trivium.CompileError, match=r"shapes change between iterations") as caught:
        run(np.ones(3, F32))
    assert "while" in str(caught.value)


def test_shape_assertions():
    run, both = compiled(
        """%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %four = stablehlo.constant dense<4> : tensor<i32>
        %ok = stablehlo.compare LE, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.custom_call @shape_assertion(%ok, %n) {
          api_version = 2 : i32, error_message = "at most 4, has {0}", has_side_effect = true
        } : (tensor<i1>, tensor<i32>) -> ()
        return %x : tensor<?xf32>""",
        "(%x: tensor<?xf32>) -> tensor<?xf32>",
    )
    both(np.ones(4, F32))
    with pytest.raises(trivium.ExecutionError, match="at most 4, has 5"):
        run(np.ones(5, F32))


X, Y = (
    "(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>",
    "(%x: tensor<?xf32>, %y: tensor<4xf32>) -> tensor<4xf32>",
)
SIZED = "(%x: tensor<?xf32>, %n: tensor<1xi64>) -> tensor<?xf32>"
BAD = {
    "operands that differ": (
        X,
        "%0 = stablehlo.add %x, %y : tensor<?xf32>",
        (np.ones(3, F32), np.ones(100_000, F32)),
        r"add: \[C1\]",
    ),
    "an operand that the static result does not have": (
        Y,
        "%0 = stablehlo.add %x, %y : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>",
        (np.ones(3, F32), np.ones(4, F32)),
        r"add: \[C1\]",
    ),
    "a slice beyond the end": (
        Y,
        "%0 = stablehlo.slice %x [0:4] : (tensor<?xf32>) -> tensor<4xf32>",
        (np.ones(2, F32), np.ones(4, F32)),
        r"slice: \[C3\]",
    ),
    "a reshape of another size": (
        SIZED,
        "%0 = stablehlo.dynamic_reshape %x, %n : (tensor<?xf32>, tensor<1xi64>) -> tensor<?xf32>",
        (np.ones(3, F32), np.array([5])),
        r"dynamic_reshape: \[C2\]",
    ),
    "a negative extent": (
        SIZED,
        "%0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [0] : (tensor<?xf32>, tensor<1xi64>) -> tensor<?xf32>",
        (np.ones(1, F32), np.array([-5])),
        r"dynamic_broadcast_in_dim: \[C7\]",
    ),
    "a size beyond the end of a constant": (
        SIZED,
        """%c = stablehlo.constant dense<1.0> : tensor<4xf32>
        %s = stablehlo.reshape %n : (tensor<1xi64>) -> tensor<i64>
        %i = stablehlo.convert %s : (tensor<i64>) -> tensor<i32>
        %0 = stablehlo.set_dimension_size %c, %i, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32>""",
        (np.ones(1, F32), np.array([9])),
        "set_dimension_size: ValueError: size has 9",
    ),
    "an extent beyond all memory": (
        SIZED,
        "%0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>",
        (np.ones(1, F32), np.array([1 << 62])),
        "memory|too big",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_arguments_that_do_not_fit_are_refused_as_by_the_interpreter(name):
    signature, body, arguments, expected = BAD[name]
    result = signature.rpartition("-> ")[2]
    module = parse(f"func.func @main{signature} {{\n{body}\nreturn %0 : {result}\n}}")
    for run in (lambda: trivium.evaluate(module, *arguments), lambda: trivium.compile(module)(*arguments)):
        # Sizes that exceed the memory are found when the shapes are known: a call of a compiled program compiles then.
        with pytest.raises((trivium.ExecutionError, trivium.CompileError), match=expected):
            run()


def test_arguments_beyond_their_bounds_are_refused():
    bounded = "tensor<?xf32, #stablehlo.bounds<4>>"
    run, both = compiled(
        f"%0 = stablehlo.add %x, %x : {bounded}\nreturn %0 : {bounded}", f"(%x: {bounded}) -> {bounded}"
    )
    both(np.ones(4, F32))
    with pytest.raises(trivium.ExecutionError, match=r"argument 0 of main has shape \(5,\)"):
        run(np.ones(5, F32))


CHOICE = """%0 = "stablehlo.if"({0}) ({{
    %twice = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    stablehlo.return %twice : tensor<?xf32>
  }}, {{
    stablehlo.return %x : tensor<?xf32>
  }}) : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>"""


def test_branches_of_different_shapes():
    """They are compiled if it is known which branch runs: from the arguments' shapes, or once it has been computed."""
    _, both = compiled(
        """%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        %p = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"""
        + CHOICE.format("%p"),
        "(%x: tensor<?xf32>) -> tensor<?xf32>",
    )
    assert [both(np.ones(extent, F32))[0].size for extent in (0, 2, 3)] == [0, 4, 3]
    _, both = compiled(CHOICE.format("%p"), "(%x: tensor<?xf32>, %p: tensor<i1>) -> tensor<?xf32>")
    sizes = [both(np.ones(extent, F32), np.array(p))[0].size for extent in (0, 2) for p in (True, False, True)]
    assert sizes == [0, 0, 0, 4, 2, 4]
    _, both = compiled(
        """%first = stablehlo.slice %x [0:1] : (tensor<?xf32>) -> tensor<1xf32>
        %scalar = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
        %one = stablehlo.constant dense<1.0> : tensor<f32>
        %p = stablehlo.compare LT, %scalar, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"""
        + CHOICE.format("%p"),
        "(%x: tensor<?xf32>) -> tensor<?xf32>",
    )
    assert [both(np.full(2, number, F32))[0].size for number in (0, 1, 0)] == [4, 2, 4]


def test_tuples_and_drawn_shapes():
    _, both = compiled(
        """%t = stablehlo.tuple %x, %x : tuple<tensor<?xf32>, tensor<?xf32>>
        %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<?xf32>, tensor<?xf32>>) -> tensor<?xf32>
        %a = stablehlo.constant dense<0.0> : tensor<f32>
       %r = stablehlo.rng %a, %a, %n, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
        %1 = stablehlo.concatenate %0, %r, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        return %1 : tensor<?xf32>""",
        SIZED,
    )
    for extent in (0, 3):
        both(np.ones(2, F32), np.array([extent]))


def test_attributes_that_are_arguments():
    """Static types do not determine them."""
    _, both = compiled(
        """%none = stablehlo.constant dense<0> : tensor<1xi64>
        %v = stablehlo.constant dense<9.0> : tensor<f32>
        %0 = stablehlo.dynamic_pad %x, %v, %low, %high, %none
          : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
        return %0 : tensor<6xf32>""",
        "(%x: tensor<4xf32>, %low: tensor<1xi64>, %high: tensor<1xi64>) -> tensor<6xf32>",
    )
    for low in (0, 2, 3):
        both(np.ones(4, F32), np.array([low]), np.array([2 - low]))


def test_a_slice_of_known_size_is_compiled_once_for_all_places():
    run, both = compiled(
        """%one = stablehlo.constant dense<1> : tensor<1xi64>
        %ones = stablehlo.concatenate %one, dim = 0 : (tensor<1xi64>) -> tensor<1xi64>
        %two = stablehlo.constant dense<2> : tensor<1xi64>
        %end = stablehlo.add %two, %n : tensor<1xi64>
        %0 = stablehlo.real_dynamic_slice %x, %n, %end, %ones
          : (tensor<?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
        return %0 : tensor<?xf32>""",
        SIZED,
    )
    x = np.arange(6, dtype=F32)
    for start in (0, 3, 4):
        both(x, np.array([start]))
    assert run.specialize(x, np.array([0])).loaded is run.specialize(x, np.array([4])).loaded


def test_custom_calls_check_their_shapes():
    call = "%0 = stablehlo.custom_call @Sharding(%x) : (tensor<?xf32>) -> {0}\nreturn %0 : {0}"
    _, both = compiled(call.replace("{0}", "tensor<?xf32>"), "(%x: tensor<?xf32>) -> tensor<?xf32>")
    both(np.ones(3, F32))
    run, both = compiled(call.replace("{0}", "tensor<4xf32>"), "(%x: tensor<?xf32>) -> tensor<4xf32>")
    both(np.ones(4, F32))
    with pytest.raises(trivium.CompileError, match="a result has type tensor<4xf32>, and tensor<3xf32>"):
        run(np.ones(3, F32))


def test_calls_of_compiled_shapes_do_not_wait_for_others(monkeypatch):
    body = "%0 = stablehlo.add %x, %x : tensor<?xf32>\nreturn %0 : tensor<?xf32>"
    run, _ = compiled(body, "(%x: tensor<?xf32>) -> tensor<?xf32>")
    run(np.ones(2, F32))
    begun, done = threading.Event(), threading.Event()
    compile_static = run.loaded._compile

    def slow(*about):
        begun.set()
        assert done.wait(30)
        return compile_static(*about)

    monkeypatch.setattr(run.loaded, "_compile", slow)
    with ThreadPoolExecutor(2) as pool:
        others = [pool.submit(run, np.ones(3, F32)) for _ in range(2)]
        assert begun.wait(30)
        np.testing.assert_array_equal(run(np.ones(2, F32))[0], [2, 2])
        done.set()
        for other in others:
            np.testing.assert_array_equal(other.result(30)[0], [2, 2, 2])


def test_extents_that_are_chosen_and_summed():
    _, both = compiled(
        """%zero = stablehlo.constant dense<0> : tensor<i32>
        %sum = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
        %r = "stablehlo.if"(%p) ({
          %size = stablehlo.reshape %sum : (tensor<i32>) -> tensor<1xi32>
          stablehlo.return %size : tensor<1xi32>
        }, {
          %size = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
          stablehlo.return %size : tensor<1xi32>
        }) : (tensor<i1>) -> tensor<1xi32>
        %0 = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
        return %0 : tensor<?xf32>""",
        "(%n: tensor<3xi32>, %m: tensor<i32>, %p: tensor<i1>) -> tensor<?xf32>",
    )
    for chosen in (True, False):
        both(np.array([1, 2, 3], np.int32), np.int32(4), np.bool_(chosen))


def test_a_ragged_product_without_groups():
    _, both = compiled(
        """%0 = "chlo.ragged_dot"(%x, %w, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
          lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
          rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
          : (tensor<?x?xf32>, tensor<?x?x?xf32>, tensor<?xi64>) -> tensor<?x?xf32>
        return %0 : tensor<?x?xf32>""",
        "(%x: tensor<?x?xf32>, %w: tensor<?x?x?xf32>, %sizes: tensor<?xi64>) -> tensor<?x?xf32>",
    )
    for sizes in ([], [2, 1]):
        both(np.ones((3, 4), F32), np.ones((len(sizes), 4, 5), F32), np.array(sizes, np.int64))
