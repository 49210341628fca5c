"""Text compared with MLIR: every form in which MLIR prints a program is read as the same program, and MLIR reads what
we print as the same program, attribute by attribute."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.ir.bytecode.mlir import parsed
from tests.ir.text.test_forms import FORMS, function
from trivium.ir.attributes import DenseElements, Dictionary, SymbolRef
from trivium.ir.equality import difference
from trivium.ir.text import parse, print_module
from trivium.ir.types import FLOATS, TensorType

pytestmark = pytest.mark.jax

GENERIC: dict[str, Any] = {"print_generic_op_form": True, "use_local_scope": True}
PRINTED: list[dict[str, Any]] = [
    {},
    {"print_generic_op_form": True},
    {"enable_debug_info": True},
    {"enable_debug_info": True, "print_generic_op_form": True},
    {"enable_debug_info": True, "use_name_loc_as_prefix": True},
    {"assume_verified": True},
]
INLINE: list[dict[str, Any]] = [
    {"use_local_scope": True},
    {"use_local_scope": True, "enable_debug_info": True},
    {**GENERIC, "enable_debug_info": True},
]
"""Options with which MLIR prints aliases inline, and omits what it otherwise prints at the end of a file."""


def demand_same(text: str) -> None:
    theirs, module = parsed(text).operation, parse(text)
    for options in (*PRINTED, *INLINE):
        assert difference(parse(theirs.get_asm(**options)), module) == ""
    for generic, locations in product((False, True), repeat=2):
        ours = print_module(module, generic=generic, locations=locations)
        assert difference(parse(ours), module) == ""
        assert parsed(ours).operation.get_asm(**GENERIC) == theirs.get_asm(**GENERIC)
    located = theirs.get_asm(**GENERIC, enable_debug_info=True)
    again = print_module(parse(located), generic=True, locations=True)
    assert parsed(again).operation.get_asm(**GENERIC, enable_debug_info=True) == located


# Programs that break a rule of an op: MLIR refuses these, because it verifies what it reads.
BROKEN = {"call", "while", "composite", "custom_call", "tuple", "reduce with a region"}


@pytest.mark.parametrize("name", [name for name in FORMS if name not in BROKEN])
def test_form(name):
    demand_same(function(*FORMS[name]))


ATTRIBUTES = """
unit
true
-1
0x10
0xFF : i8
1 : index
-1 : i1
-128 : si8
15 : i4
3 : ui2
-170141183460469231731687303715884105728 : i128
1. : f32
1.e5 : f32
0.1
0.1 : bf16
-0.0 : f16
0x7F800001 : f32
0xFFC12345 : f32
0x7FF0000000000001
0x7F : f8E5M2
0x80 : f8E4M3FNUZ
2.0 : f8E8M0FNU
0x7 : f4E2M1FN
1.0 : f6E3M2FN
4.9406564584124654e-324
65520.0 : f16
16777217.0 : f32
9007199254740993.0
"abc\\22\\\\\\0A\\C3\\A9\\FF"
"é日"
[1, 2 : i32, 1.5, 2.5 : f32, [true, {a = 1}], unit]
{"quoted key" = 1, "a.b" = 2, a.c = 3, "é", flag}
@f::@g::@"h i"
@"a\\22b"
array<i1: true, false>
array<i32: 0x10, -1>
array<f32: 1.0, 0x7FC00000>
array<bf16>
tensor<f32, "encoding">
tensor<2xf32, [1, 2]>
tensor<2xf32, {a = 1}>
tensor<?x4xf32, #stablehlo.bounds<5, ?>>
tensor<*xf32>
memref<4xf32>
memref<4x4xf32, strided<[1, ?], offset: ?>>
complex<f64>
tuple<tensor<f32>, tuple<i1>>
() -> (() -> ())
(() -> i32, f32) -> (i32, f32)
!stablehlo.future<tensor<f32>, tensor<i32>>
!quant.uniform<i8<-127:127>:f32:1, {1.0:2, 2.0}>
affine_map<(d0)[s0] -> (d0 + s0 * 2 - 1, d0 floordiv 4, d0 mod 3, s0 ceildiv 2)>
affine_set<(d0, d1)[s0] : (d0 - d1 >= 0, s0 == 0)>
strided<[1, ?], offset: 3>
dense<1> : tensor<0x2xi64>
dense<> : tensor<0x2xi64>
dense<[[], []]> : tensor<2x0xi32>
dense<"0xFF01"> : tensor<2xi8>
dense<"0x01000000"> : tensor<5xi32>
dense<"0x05"> : tensor<8xi1>
dense<"0x0100010001000101"> : tensor<8xi1>
dense<"0xFF01"> : tensor<2xi4>
dense<[0x1, 1.0]> : tensor<2xf4E2M1FN>
dense<[0x3F, 1.0]> : tensor<2xf6E2M3FN>
dense<[15, 1]> : tensor<2xui4>
dense<[-1, 0]> : tensor<2xi1>
dense<[(1.0, 2.0), (0x7FC00001, 0x80000000)]> : tensor<2xcomplex<f32>>
dense<[0x7F800001, 0xFFFFFFFF]> : tensor<2xf32>
#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>
#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>
#stablehlo.scatter<>
#stablehlo.channel_handle<handle = 0, type = 0>
#stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
#stablehlo.type_extensions<bounds = [1, ?]>
#stablehlo.axis_ref<name = "x">
#chlo<comparison_type FLOAT>
#sdy.sharding<@mesh, [{"x"}, {?}p1], replicated={"y"}>
#sdy.op_sharding_rule<([i, j])->([j, i]) {i=1, j=2}>
loc("a":1:2 to :4)
loc("na\\22me"("f":1:1 to 2:3))
loc(callsite("a" at callsite("b":1:1 at unknown)))
loc(fused<{k = [1, "m"]}>["a", "b":1:2])
""".strip().splitlines()


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_attribute(text):
    demand_same(f"module attributes {{a.x = {text}}} {{}}")


PROGRAMS = {
    "nothing": "module {}",
    "nested modules": "module @a { module @b attributes {x.y} { func.func @f() { return } }\n"
    " func.func @g() { return } }",
    "old generic form": '"builtin.module"() ({\n^bb0:\n}) {sym_name = "a b", x.y = 1} : () -> ()',
    "several modules": "module {}\nmodule @m {}\nfunc.func @f() { return }\n// -----\nfunc.func @g() { return }",
    "mesh alone": 'sdy.mesh @mesh = <["x"=2]>\nfunc.func private @f()',
    "quoted symbols": 'module @"a b" { func.func @"f g"() { return }\n'
    ' func.func @h() { call @"f g"() : () -> () return } }',
    "declarations": "func.func private @f(%a: tensor<f32>, %b: i32 {a.b}) -> (tensor<f32> {x.y = 1})\n"
    "func.func nested @g(tensor<f32>) -> (() -> ())",
    "generic function": '"func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "f", arg_attrs ='
    ' [{a.b = 1}], no_inline}> ({\n^bb0(%x: tensor<f32> loc("q")):\n "func.return"(%x) : (tensor<f32>) -> ()\n})'
    " : () -> ()",
    "label": "func.func @f() {\n^bb0:\n return }",
    "groups of results": "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n"
    "%x:2, %y, %z:1 = stablehlo.optimization_barrier %a, %a#0, %a, %a : tensor<f32>, tensor<f32>, tensor<f32>,"
    " tensor<f32>\n stablehlo.negate %z#0 : tensor<f32>\n return %x#1 : tensor<f32> }",
    "comments": '// x\nmodule { // y\n func.func @f( // z\n %a: tensor<f32> // "\n ) { // }\n return // w\n } }// end',
    "no blanks": "module{func.func@f(%a:tensor<2xf32>)->tensor<2xf32>{%0=stablehlo.add%a,%a:tensor<2xf32>return%0:"
    "tensor<2xf32>}}",
    "lines of another system": "module {\r\n\tfunc.func @f() {\r\n\t\treturn\r\n\t}\r\n}\r\n",
    "aliases of types": "!t = tensor<2xi32>\n!u = tuple<!t, !t>\nfunc.func @f(%a: !u) -> !t { "
    "%0 = stablehlo.get_tuple_element %a[0] : (!u) -> !t\n return %0 : !t }",
    "aliases of attributes": "#0 = 1 : i32 #c-d = [#0]\n#e = #stablehlo.bounds<4>\n"
    "func.func @f(%a: tensor<?xf32, #e> {z.a = #c-d}) { return }",
    "aliases of locations": 'func.func @f() { return loc(#late) }\n#a = loc("x")\nfunc.func @g() { return } loc(#a)\n'
    '#b = loc(callsite(#a at "y":1:2))\n#late = loc(fused[#a, #b])',
    "blanks in types": "func.func @f(%a: tensor< 2 x ? x complex< f32 > >, %b: tensor<0x10xf32>) { return }",
    "locations of arguments": 'func.func @f(%a: tensor<f32> {a.b} loc("a.py":1:2 to 3:4)) { return loc(unknown) }'
    ' loc(fused<{k = 1}>["x"("y"), callsite("a" at "b")])',
    "attributes of anyone": "func.func @f(%a: tensor<f32>) {\n %0 = stablehlo.negate %a {flag, mhlo.sharding ="
    ' "{replicated}", mhlo.frontend_attributes = {a = "b"}} : tensor<f32>\n return }',
}
RESOURCES = {
    "resource": "func.func @f() -> tensor<2xf32> { %0 = stablehlo.constant dense_resource<r> : tensor<2xf32>\n"
    ' return %0 : tensor<2xf32> }\n{-# dialect_resources: { builtin: { r: "0x040000000000803F00000040" } } #-}',
    "resources of others": 'module {}\n{-# dialect_resources: { builtin: { "a b": "0x0400000001000000" } },'
    ' external_resources: { a: { b: "x", c: true } } #-}',
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    demand_same(PROGRAMS[name])


@pytest.mark.parametrize("name", RESOURCES)
def test_resources(name):
    """MLIR gives each resource that it reads a new name, so names are not compared."""
    module = parse(RESOURCES[name])
    for text, options in product((RESOURCES[name], str(module)), PRINTED):
        assert difference(parse(parsed(text).operation.get_asm(**options)), module) == ""


@pytest.mark.parametrize("kind", [kind for name, kind in FLOATS.items() if name != "tf32"], ids=str)
def test_digits(kind):
    """Floats of arbitrary bits, and short ones, are written digit by digit as MLIR writes them."""
    random, size = np.random.default_rng(0), kind.dtype.itemsize
    with np.errstate(all="ignore"):
        arrays = [
            random.integers(0, (1 << kind.width) - 1, 99, np.uint64, endpoint=True).astype(f"u{size}"),
            np.round(random.standard_normal(99) * 10.0 ** random.integers(-8, 9, 99), 3).astype(kind.dtype),
            (random.integers(-(10**6), 10**6, 99) * 10.0 ** random.integers(-12, 20, 99)).astype(kind.dtype),
        ]
    for array in arrays:
        module = parse("module {}")
        module.extra["a.x"] = DenseElements(array.view(kind.dtype), TensorType((99,), kind))
        text = module.text(elide=False)
        assert str(parsed(text)).split() == text.split()


def test_strings():
    """Names and strings may contain any bytes."""
    random = np.random.default_rng(0)
    for _ in range(50):
        text = random.integers(0, 256, 8, dtype=np.uint8).tobytes().decode("utf-8", "surrogateescape")
        module = parse("module { func.func private @f() }")
        module.extra |= {"a.x": text, "a.y": Dictionary({text: SymbolRef(text, (text,))})}
        module.functions["f"].attributes["sym_name"] = text
        assert str(parsed(str(module))).split() == str(module).split()


RETURNS = """
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @nothing() {
    return {foo.a}
  }
  func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %0 = "stablehlo.if"(%p) ({
      stablehlo.return %x {foo.a} : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
        (%part: tensor<2xf32>) {
      sdy.return {foo.a} %part : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return {foo.a = 1 : i32} %1 : tensor<4xf32>
  }
}
"""


def test_returns_have_their_attributes_before_or_after_values():
    demand_same(RETURNS)
