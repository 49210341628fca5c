"""Calls are replaced by the bodies of functions, within limits that are checked before anything is copied."""

from __future__ import annotations

import time

import pytest

import trivium
from trivium.ir.core import MAX_NESTING
from trivium.ir.errors import CompileError, Error
from trivium.ir.func import Call, Module
from trivium.ir.inlining import ALLOWED_GROWTH, ALWAYS_ALLOWED, inline_calls
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ONE = "tensor<f32>"


def chain(length: int, calls: int, last: str = "") -> Module:
    """A chain of functions: the first negates its argument, and each of the others calls the previous one that many
    times."""
    functions = [
        f"func.func private @f0(%x0: {ONE}) -> {ONE} {{\n%x1 = stablehlo.negate %x0 : {ONE}\nreturn %x1 : {ONE}\n}}"
    ]
    for index in range(1, length + 1):
        name = "@main" if index == length else f"private @f{index}"
        lines = [f"%x{i + 1} = call @f{index - 1}(%x{i}) : ({ONE}) -> {ONE}" for i in range(calls)]
        functions.append(
            "\n".join([f"func.func {name}(%x0: {ONE}) -> {ONE} {{", *lines, f"return %x{calls} : {ONE}\n}}"])
        )
    return parse("\n".join(functions))


def nested(depth: int) -> Module:
    """Returns functions of which each calls the previous one in a branch."""
    functions = ["func.func private @f0(%p: tensor<i1>) -> tensor<i1> {\nreturn %p : tensor<i1>\n}"]
    for index in range(1, depth + 1):
        name = "@main" if index == depth else f"private @f{index}"
        functions.append(
            f"""func.func {name}(%p: tensor<i1>) -> tensor<i1> {{
              %0 = "stablehlo.if"(%p) ({{
                %1 = func.call @f{index - 1}(%p) : (tensor<i1>) -> tensor<i1>
                stablehlo.return %1 : tensor<i1>
              }}, {{
                stablehlo.return %p : tensor<i1>
              }}) : (tensor<i1>) -> tensor<i1>
              return %0 : tensor<i1>
            }}"""
        )
    return parse("\n".join(functions))


def test_calls_of_calls():
    module = chain(5, 2)
    expected = evaluate(module, 3.0)
    assert inline_calls(module.main)
    assert not any(isinstance(op, Call) for op in module.main.walk())
    assert sum(op.NAME == "stablehlo.negate" for op in module.main.walk()) == 32
    assert evaluate(module, 3.0) == expected
    assert not inline_calls(module.main)


@pytest.mark.parametrize(
    ("length", "has"), [(16, "65537 operations"), (29, "536870913 operations"), (3_000, "more than 10^18 operations")]
)
def test_too_many_operations(length, has):
    module = chain(length, 2)
    start = time.process_time()
    with pytest.raises(CompileError, match="@main has ") as raised:
        trivium.compile(module)
    assert time.process_time() - start < 5
    assert f"has {has} once its calls are inlined" in raised.value.message
    assert "expected at most" in raised.value.message
    assert raised.value.source


def test_bounds():
    """The longer a program is, the more it may grow."""
    assert ALWAYS_ALLOWED == 1 << 15
    inline_calls(chain(13, 2).main)
    inline_calls(chain(2, 200).main)  # 40,000 from 405: less than `ALLOWED_GROWTH` times as many
    assert ALLOWED_GROWTH * 405 > 200 * 200


def test_a_long_chain_of_functions():
    """Only the result is copied, not each function with its calls inlined: that would be millions of operations."""
    module = chain(3000, 1)
    assert inline_calls(module.main)
    assert [op.NAME for op in module.main.body.walk()] == ["stablehlo.negate", "func.return"]


def test_nesting():
    module = nested(MAX_NESTING - 2)
    inline_calls(module.main)
    module.verify()
    with pytest.raises(
        CompileError, match=f"nested {MAX_NESTING + 1} deep once its calls are inlined, expected at most"
    ):
        inline_calls(nested(MAX_NESTING - 1).main)


def test_recursion():
    text = f"func.func @main(%x: {ONE}) -> {ONE} {{\n%0 = call @main(%x) : ({ONE}) -> {ONE}\nreturn %0 : {ONE}\n}}"
    with pytest.raises(CompileError, match="@main calls itself"):
        inline_calls(parse(text).main)


def test_a_declaration():
    text = f"""func.func private @f({ONE}) -> {ONE}
    func.func @main(%x: {ONE}) -> {ONE} {{
      %0 = call @f(%x) : ({ONE}) -> {ONE}
      return %0 : {ONE}
    }}"""
    with pytest.raises(Error, match="@f has no body"):
        trivium.compile(parse(text))


def test_unreached_functions_cost_nothing():
    """A function that `main` does not call is not inlined, however large the result would be."""
    module = chain(40, 2)
    module.main.attributes["sym_name"] = "huge"
    module.body.block.append(chain(2, 2).main.detach())
    for function in module.functions.values():
        function.attributes["sym_visibility"] = None
    assert trivium.compile(module)(2.0)[0] == 2.0
