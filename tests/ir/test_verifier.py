"""What the verifier checks of all programs, regardless of their ops: names, types of functions and calls, scopes,
blocks and terminators. MLIR accepts and refuses the same."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.ir.ops.constraints import broken
from tests.ir.ops.records import collect
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.core import MAX_NESTING, Block, Region
from trivium.ir.declare import Op
from trivium.ir.errors import Error, ParseError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.text import parse, print_module
from trivium.ir.types import I1, I32, INDEX, TOKEN, FunctionType, FutureType, TupleType, tensor
from trivium.ir.verifier import verify

IF = '"stablehlo.if"(%p) (BRANCH, { stablehlo.return }) : (tensor<i1>) -> ()'
FUNCTION = '"func.func"() <{function_type = () -> (), sym_name = "f"}>'
CONSTANT = "%0 = stablehlo.constant dense<1.0> : tensor<f32>"
HEAD = "func.func @f(%p: tensor<i1>, %a: tensor<f32>) { "

FINE = {
    "declarations": "func.func private @f() func.func nested @g()",
    "types of any dialect": "func.func @f(%a: f32, %b: index, %c: tuple<tensor<f32>>) -> f32 { return %a : f32 }",
    "ops outside of functions": f"module {{ {CONSTANT} }}",
    "StableHLO's own return": f"{FUNCTION} ({{ stablehlo.return }}) : () -> ()",
    "names of another module": "module { func.func private @f() module { func.func private @f() } }",
    "values from around": HEAD
    + IF.replace("BRANCH", "{ %1 = stablehlo.abs %a : tensor<f32> stablehlo.return }")
    + " return }",
}
BROKEN = {
    "a public declaration": ("func.func @f()", "is public and has no body"),
    "a name twice": ("func.func private @f() func.func private @f()", "the symbol @f is defined twice"),
    "a name for two kinds": ("module { func.func private @f() module @f {} }", "the symbol @f is defined twice"),
    "a function in a function": (
        "func.func @f() { func.func @g() { return } return }",
        "region of func.func, expected a module",
    ),
    "a name further out": (
        "module { func.func private @f() module { func.func @g() { call @f() : () -> () return } } }",
        "@f is not a function",
    ),
    "a path to a function": (
        "module { module @m { func.func private @f() } func.func @g() { call @m::@f() : () -> () return } }",
        "@m::@f is not a function",
    ),
    "a call of nothing": ("func.func @f() { call @g() : () -> () return }", "@g is not a function of the module"),
    "a call of a module": (
        "module { module @m {} func.func @g() { call @m() : () -> () return } }",
        "@m is not a function",
    ),
    "a call with compatible operands": (
        "func.func private @g(tensor<?xf32>) func.func @f(%a: tensor<2xf32>) "
        "{ call @g(%a) : (tensor<2xf32>) -> () return }",
        "has operands (tensor<2xf32>), @g is (tensor<?xf32>) -> ()",
    ),
    "a call with compatible results": (
        "func.func private @g() -> tensor<?xf32> func.func @f() { %0 = call @g() : () -> tensor<2xf32> return }",
        "has results (tensor<2xf32>), @g is () -> tensor<?xf32>",
    ),
    "a compatible return": (
        "func.func @f(%a: tensor<2xf32>) -> tensor<?xf32> { return %a : tensor<2xf32> }",
        "returns (tensor<2xf32>), its type is (tensor<2xf32>) -> tensor<?xf32>",
    ),
    "a return of less": ("func.func @f() -> tensor<f32> { return }", "returns (), its type is"),
    "a function's return in a branch": (HEAD + IF.replace("BRANCH", "{ func.return }") + " return }", "return"),
    "a function's return outside": ('module { "func.return"() : () -> () }', "is outside of a function"),
    "the return of another dialect": (HEAD + IF.replace("BRANCH", "{ sdy.return }") + " return }", "ends a region of"),
    "a value from outside a manual computation": (
        'sdy.mesh @m = <["x"=2]> func.func @f(%a: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<4xf32> { %0 = '
        'sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>] manual_axes={"x"} '
        "(%b: tensor<2xf32>) { %1 = stablehlo.add %b, %s : tensor<2xf32> sdy.return %1 : tensor<2xf32> } "
        ": (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }",
        "%s",
    ),
    "no return": ("func.func @f() { }", "return"),
    "a return in the middle": ("func.func @f() { return return }", "return"),
    "no block": (HEAD + IF.replace("BRANCH", "{ }") + " return }", "has a region of 0 blocks, expected one"),
    "an empty block": (HEAD + IF.replace("BRANCH", "{ ^bb0: }") + " return }", "return"),
    "several blocks": (
        HEAD + IF.replace("BRANCH", "{ stablehlo.return ^bb1: stablehlo.return }") + " return }",
        "block",
    ),
    "a module with arguments": (
        '"builtin.module"() ({ ^bb0(%a: tensor<f32>): }) : () -> ()',
        "expected one block without",
    ),
    "a function's block without arguments": (
        '"func.func"() <{function_type = (tensor<f32>) -> (), sym_name = "f"}> ({ func.return }) : () -> ()',
        "its block has arguments ()",
    ),
    "a value before its op": (f"func.func @f() {{ %1 = stablehlo.abs %0 : tensor<f32> {CONSTANT} return }}", "%0"),
    "a value of a branch": (
        HEAD
        + IF.replace("BRANCH", f"{{ {CONSTANT} stablehlo.return }}")
        + " %1 = stablehlo.abs %0 : tensor<f32> return }",
        "%0",
    ),
    "a value from outside a function": (
        f"module {{ {CONSTANT} func.func @f() -> tensor<f32> {{ return %0 : tensor<f32> }} }}",
        "%0",
    ),
    "two results of one": (
        HEAD + '%0:2 = "stablehlo.abs"(%a) : (tensor<f32>) -> (tensor<f32>, tensor<f32>) return }',
        "has 2 results, expected 1",
    ),
    "no operand of one": (HEAD + '%0 = "stablehlo.abs"() : () -> tensor<f32> return }', "has 0 operands, expected 1"),
    "a region of none": (
        HEAD + '%0 = "stablehlo.abs"(%a) ({ stablehlo.return }) : (tensor<f32>) -> tensor<f32> return }',
        "has 1 regions, expected 0",
    ),
    "a successor": (HEAD + '"stablehlo.return"() [^bb1] : () -> () ^bb1: return }', "successor"),
    "a bound of a static dimension": ("func.func private @f(tensor<4xf32, #stablehlo.bounds<4>>)", "static"),
    "bounds of another rank": ("func.func private @f(tensor<?xf32, #stablehlo.bounds<4, 5>>)", "bounds"),
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_accepted(text: str) -> None:
    parse(text).verify()


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_refused(text: str, message: str) -> None:
    with pytest.raises((VerificationError, ParseError), match=re.escape(message)):
        parse(text).verify()


@pytest.mark.jax
def test_mlir_agrees(mlir) -> None:
    for text in FINE.values():
        mlir(text)
    for name, (text, _) in BROKEN.items():
        try:
            mlir(text)
        except Exception:
            continue
        pytest.fail(f"MLIR accepts {name}")


def test_an_error_tells_line_and_column() -> None:
    with pytest.raises(VerificationError) as caught:
        parse("func.func @f(%a: tensor<2xi32>) {\n  %0 = stablehlo.sine %a : tensor<2xi32>\n  return\n}").verify()
    assert str(caught.value) == (
        "sine: [I1] operand has element type i32, expected floating-point or complex or per-tensor quantized\n"
        "  in:    %0 = stablehlo.sine %a : tensor<2xi32>\n"
        "  from:  <text>:2:8"
    )


def test_blocks_that_were_built_wrong() -> None:
    kind = FunctionType((), ())
    for blocks in ([Block(), Block()], [Block()]):
        function = Function.create(attributes={"sym_name": "f", "function_type": kind}, regions=[Region(blocks)])
        with pytest.raises(VerificationError, match="block"):
            Module.build(functions=[function]).verify()
        with pytest.raises(VerificationError, match="expected one that ends in a return"):
            Function("f", kind, Region(blocks))


def wrong_regions() -> Iterator[Region]:
    """Yields regions without a block, with two blocks, with a block that has no terminator, and with blocks of types
    that no op expects."""
    yield Region()
    yield Region([Block(operations=[ops.Return([])]), Block(operations=[ops.Return([])])])
    yield Region([Block()])
    yield Region([Block([tensor(2)])])
    yield Region([Block(operations=[ops.Return([])])])
    block = Block([TOKEN, tensor(2)])
    block.append(ops.Return(block.arguments))
    yield Region([block])


def examples() -> dict[str, Op]:
    """Returns one example of each op, from the records and from the tests of constraints."""
    records = (op for record in collect() for op in record.module().main.body.block)
    tested = (example.op for example in broken())
    return {op.NAME: op for op in (*tested, *records) if isinstance(op, Op)}


EXAMPLES = examples()
WRONG = (
    TOKEN,
    I32,
    TupleType((tensor(2),)),
    FutureType((tensor(2),)),
    tensor(0),
    tensor(None, None),
    tensor(None, of=INDEX),
)


@pytest.mark.parametrize("op", [op for op in EXAMPLES.values() if op.INFER is not None], ids=lambda op: op.NAME)
def test_results_follow_or_do_not_from_operands_of_any_type(op: Op) -> None:
    for value in dict.fromkeys(op.operands):
        kept = value.type
        for value.type in WRONG:
            with suppress(Error):
                type(op).INFER(op)
        value.type = kept


@pytest.mark.parametrize("op", [op for op in EXAMPLES.values() if op.regions], ids=lambda op: op.NAME)
def test_regions_of_any_form_are_accepted_or_refused(op: Op) -> None:
    for index in range(len(op.regions)):
        for wrong in wrong_regions():
            regions = [wrong if position == index else region.clone() for position, region in enumerate(op.regions)]
            attributes = dict(op.attributes)
            changed = type(op).create(op.operands, op.result_types, attributes, regions, segments=op.segments)
            for check in (verify, type(op).CHECK, type(op).INFER):
                if check is not None:
                    with suppress(Error):
                        check(changed)


def nested(depth: int) -> Module:
    """Returns a program of nested branches, in which regions, with those of the module and the function, are `depth`
    deep."""

    def branches(builder, pred):
        rest = region([], lambda inner: branches_of(inner, pred, depth - 3))
        builder.add(ops.If(pred, rest, region([], lambda inner: [])))
        return []

    def branches_of(builder, pred, left):
        if left:
            deeper = region([], lambda inner: branches_of(inner, pred, left - 1))
            builder.add(ops.If(pred, deeper, region([], lambda inner: [])))
        return []

    return Module.build(functions=[Function.build("main", [tensor(of=I1)], branches)])


@pytest.mark.parametrize(
    "layout", ["dense<0> : tensor<9000000000xindex>", "dense<[[0]]> : tensor<1x1xindex>", "dense<1> : tensor<1xindex>"]
)
def test_layouts_are_orders_of_dimensions(layout: str) -> None:
    """Even if the layout is a splat of very many numbers."""
    line = f"stablehlo.custom_call @f(%a) {{operand_layouts = [{layout}], result_layouts = []}} : (tensor<2xf32>) -> ()"
    with pytest.raises(VerificationError, match="expected an order of its 1 dimensions"):
        parse(f"func.func @f(%a: tensor<2xf32>) {{ {line} return }}").verify()


def test_constants_that_ops_read_may_be_splats() -> None:
    many = "tensor<1000000000xi64>"
    lines = f"""
      %s = stablehlo.constant dense<1> : {many}
      %0 = "stablehlo.dynamic_gather"(%a, %s, %s) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0]>}}>
        : (tensor<2xf32>, {many}, {many}) -> tensor<?xf32>
      return"""
    with pytest.raises(VerificationError, match="dynamic_gather: "):
        parse(f"func.func @f(%a: tensor<2xf32>) {{ {lines} }}").verify()


def test_nesting_has_one_limit() -> None:
    module = nested(MAX_NESTING)
    module.verify()
    for generic in (False, True):
        parse(print_module(module, generic=generic)).verify()
    deserialize(serialize(module)).verify()
    with pytest.raises(VerificationError, match=f"is nested {MAX_NESTING + 1} regions deep"):
        nested(MAX_NESTING + 1).verify()


def test_many_functions_and_calls() -> None:
    names = [f"f{index}" for index in range(5000)]
    text = "\n".join(f"func.func private @{name}() {{ call @{name}() : () -> () return }}" for name in names)
    module = parse(text)
    start = time.perf_counter()
    module.verify()
    assert (
        time.perf_counter() - start < 5
    )  # 0.1 s if each call is looked up once; a minute if each call reads the whole module
