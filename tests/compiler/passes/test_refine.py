"""Programs of dynamic shape, compiled: for each new combination of shapes, and of values that extents follow from."""

from collections.abc import Callable
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
    assert run.specialize(np.ones((2, 3), F32)) is run.specialize(np.zeros((2, 3), F32))
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
    with pytest.raises(trivium.CompileError, match=r"shapes change from turn to turn") as caught:
        run(np.ones(3, F32))
    assert "while" in str(caught.value)


def test_extents_from_data_are_refused():
    module = parse("""func.func @main(%x: tensor<1xf32>) -> tensor<?xf32> {
      %i = stablehlo.convert %x : (tensor<1xf32>) -> tensor<1xi32>
      %0 = stablehlo.dynamic_iota %i, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }""")
    with pytest.raises(trivium.CompileError, match="its extents follow from values that only a run knows"):
        trivium.compile(module)


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
