"""Short texts that demand a lot: deeply nested, defined through one another, repeated, or huge."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

DEPTHS = (3, 10, 50, 70, 300, 3000)
COUNTS = (2, 30, 300, 3000)

BRACKETS = (
    *(("[", "]", "1"), ("{a = ", "}", "1"), ("#a.b<", ">", "1"), ("#stablehlo.dot<", ">", ""), ("dense<[", "]>", "1")),
    *(
        ('{a = ["x", ', ', loc("a")]}', "@f"),
        ("array<", ">", "i8"),
        ("affine_map<(", ")>", "d0"),
        ("(", ") -> ()", "i1"),
    ),
    *(("tuple<", ">", "f32"), ("complex<", ">", "f32"), ("tensor<2x", ">", "f32"), ("!a.b<", ">", "")),
    *(
        ("!stablehlo.future<", ">", "f32"),
        ("() -> (", ")", "f32"),
        ("tensor<2xf32, [", "]>", "1"),
        ("tuple<(", ") -> ()>", ""),
    ),
    *(("loc(", ")", '"a"'), ("loc(fused<loc(", ")>[])", "unknown"), ("!quant.uniform<i8:", ", 1.0>", "f32")),
)
LOCATIONS = (
    *(('"a"(', ")", "unknown"), ("callsite(", ' at "a")', '"b"'), ("callsite(unknown at ", ")", '"b"')),
    *(("fused[", "]", '"a"'), ("fused<loc(", ")>[]", '"a"'), ("fused<[loc(", ')]>["b"]', '"a"')),
)
REGIONS = (
    ("module {", "}", ""),
    ("module { module @a {", "} }", "func.func @f() { return }"),
    ('"stablehlo.if"(%p) ({', "stablehlo.return }, { stablehlo.return }) : (tensor<i1>) -> ()", ""),
    ('"stablehlo.case"(%i) ({', "stablehlo.return }) : (tensor<i32>) -> ()", ""),
    (
        "stablehlo.while() cond { stablehlo.return %p : tensor<i1> } do {",
        "stablehlo.return }",
        "%0 = stablehlo.negate %p : tensor<i1>",
    ),
    ("func.func @f() {", "return }", ""),
)
SHARING = (
    *(("#a{}", "1 : i64", "[#a{0}, #a{0}]"), ("#a{}", "1 : i64", "{{a = #a{0}, b = #a{0}}}")),
    *(
        ("!a{}", "f32", "tuple<!a{0}, !a{0}>"),
        ("!a{}", "f32", "(!a{0}) -> !a{0}"),
        ("!a{}", "f32", "!stablehlo.future<!a{0}>"),
    ),
    *(("#a{}", "loc(unknown)", "loc(fused[#a{0}, #a{0}])"), ("#a{}", 'loc("a")', "loc(callsite(#a{0} at #a{0}))")),
    *(("#a{}", 'loc("a")', "loc(fused<[#a{0}, #a{0}]>[#a{0}])"), ("#a{}", 'loc("a")', 'loc("b"(#a{0}))')),
    *(("#a{}", "1 : i64", "[#a{0}]"), ("!a{}", "f32", "tuple<!a{0}>"), ("#a{}", "f32", "tensor<2xf32, [#a{0}]>")),
)
HUGE = (
    *("dense<0.0> : tensor<1000000000x1000000000xf32>", "dense<true> : tensor<9223372036854775807xi1>"),
    *('dense<"0x01"> : tensor<9223372036854775807xi8>', "dense<1> : tensor<4294967296x4294967296xi32>"),
    *("dense<(0.0,0.0)> : tensor<99999999x99999999xcomplex<f64>>", "dense<> : tensor<0x9223372036854775807xf32>"),
    *("dense<1> : tensor<100000000xi8>", "dense<1> : tensor<300000000xi64>", "dense<true> : tensor<2000000000xi1>"),
)
HUGE_OPS = (
    "%0 = stablehlo.iota dim = 0 : tensor<{0}xf32>",
    "%0 = stablehlo.constant dense<1.0> : tensor<{0}xf32>",
    "%0 = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<{0}xi1>",
    "%1 = stablehlo.constant dense<1.0> : tensor<{0}xf32> %0 = stablehlo.add %1, %1 : tensor<{0}xf32>",
    "%1 = stablehlo.constant dense<1.0> : tensor<{0}xf32> %0 = stablehlo.concatenate %1, %1, dim = 0 :"
    " (tensor<{0}xf32>, tensor<{0}xf32>) -> tensor<?xf32>",
    '%1 = "stablehlo.constant"() <{{value = dense<1.0> : tensor<{0}xf32>}}> : () -> tensor<{0}xf32>'
    " %0 = stablehlo.reshape %1 : (tensor<{0}xf32>) -> tensor<1x{0}xf32>",
)
HUGE_OPERANDS = (
    "%0 = stablehlo.dynamic_reshape %p, %s : (tensor<i1>, {0}) -> tensor<?xi1>",
    "%0 = stablehlo.dynamic_broadcast_in_dim %p, %s, dims = [] : (tensor<i1>, {0}) -> tensor<?xi1>",
    "%0 = stablehlo.dynamic_iota %s, dim = 0 : ({0}) -> tensor<?xi1>",
    '%0 = "stablehlo.real_dynamic_slice"(%s, %s, %s, %s) : ({0}, {0}, {0}, {0}) -> tensor<?xi64>',
    "%0 = stablehlo.dynamic_pad %s, %i, %s, %s, %s : ({0}, tensor<i32>, {0}, {0}, {0}) -> tensor<?xi64>",
    '%0 = "stablehlo.dynamic_gather"(%s, %s, %s) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0]>}}>'
    " : ({0}, {0}, {0}) -> tensor<?xi64>",
    "%0 = stablehlo.custom_call @f(%s) {{operand_layouts = [dense<0> : {0}], result_layouts = []}} : ({0}) -> ()",
    '%0 = "stablehlo.transpose"(%s) {{permutation = dense<0> : {0}}} : ({0}) -> {0}',
    '%0 = "stablehlo.all_reduce"(%s) ({{^bb0(%a: tensor<i64>, %b: tensor<i64>): stablehlo.return %a : tensor<i64>}})'
    " {{replica_groups = dense<0> : {0}}} : ({0}) -> {0}",
)
"""Ops that are checked element by element if their operands are small."""
EXTENTS = ("0", "100000000", "1000000000000", "9223372036854775807", "1000000000x1000000000", "4294967296x4294967296")


def bomb(rng: Random) -> str:
    """Returns one of the texts."""
    return rng.choice(_KINDS)(rng)


def program(*lines: str, head: str = "") -> str:
    """Returns a function with a boolean `%p` and an integer `%i` around some operations."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"{head}func.func @main(%p: tensor<i1>, %i: tensor<i32>) {{\n{body}  return\n}}\n"


def nested_attribute(rng: Random) -> str:
    text = _nest(rng, BRACKETS)
    place = rng.randrange(5)
    if place == 0:
        return f"module attributes {{a = {text}}} {{}}"
    if place == 1:
        return program(f"%0 = stablehlo.negate %p {{a = {text}}} : tensor<i1>")
    if place == 2:
        return program(f"%0 = stablehlo.negate %p : {text}")
    if place == 3:
        return f"func.func private @f({text}) -> ({text})"
    return f"#a = {text}\n!b = {text}\nmodule attributes {{a = #a}} {{}}"


def nested_location(rng: Random) -> str:
    text = _nest(rng, LOCATIONS)
    if rng.random() < 0.5:
        return f"module {{}} loc({text})"
    return f"#loc1 = loc({text})\n" + program("%0 = stablehlo.negate %p : tensor<i1> loc(#loc1)")


def nested_region(rng: Random) -> str:
    opening, closing, middle = rng.choice(REGIONS)
    depth = rng.choice(DEPTHS)
    text = f"{opening}\n" * depth + middle + f"\n{closing}" * rng.choice((depth, depth, depth - 1, 0))
    return text if opening.startswith(("module", "func")) else program(text)


def shared(rng: Random) -> str:
    """Each alias contains the previous one twice, so that the size that it represents doubles with each."""
    name, first, following = rng.choice(SHARING)
    depth = rng.choice((*DEPTHS, 25, 30, 60))
    lines = [f"{name.format(0)} = {first}"]
    lines += [f"{name.format(number + 1)} = {following.format(number)}" for number in range(depth)]
    if rng.random() < 0.2:
        lines.reverse()
    last, head = name.format(depth), "\n".join(lines) + "\n"
    if "loc" in first and rng.random() < 0.7:
        return program(f"%0 = stablehlo.negate %p : tensor<i1> loc({last})", head=head)
    if last[0] == "!":
        return program(f"%0, %1 = stablehlo.custom_call @f(%p) : (tensor<i1>) -> ({last}, {last})", head=head)
    return program(f"%0 = stablehlo.negate %p {{a = {last}, b = [{last}, {last}]}} : tensor<i1>", head=head)


def huge_elements(rng: Random) -> str:
    text = rng.choice(HUGE)
    if rng.random() < 0.5:
        return program(f"%0 = stablehlo.constant {text}", f"%1 = stablehlo.constant {text}")
    return program(f"%0 = stablehlo.negate %p {{a = {text}, b = [{text}, {{c = {text}}}]}} : tensor<i1>")


def huge_values(rng: Random) -> str:
    return program(rng.choice(HUGE_OPS).format(rng.choice(EXTENTS)))


def huge_operands(rng: Random) -> str:
    kind = f"tensor<{rng.choice(EXTENTS)}xi64>"
    constant = f"%s = stablehlo.constant dense<{rng.choice((0, 1, -1))}> : {kind}"
    return program(constant, rng.choice(HUGE_OPERANDS).format(kind))


def repeated(rng: Random) -> str:
    """Many repetitions of the same thing."""
    many = rng.choice(COUNTS)
    match rng.randrange(12):
        case 0:
            return program(*["%x = stablehlo.negate %p : tensor<i1>"] * many)
        case 1:
            return program(*[f"%a{i} = stablehlo.negate %p : tensor<i1>" for i in range(many)])
        case 2:
            return "".join(f"func.func @f{i % many}() {{ return }}\n" for i in range(many + rng.randrange(2)))
        case 3:
            return "".join(f"func.func @f{i}() {{ call @f{i + 1}() : () -> () return }}\n" for i in range(many))
        case 4:
            return program(f"%0:{many} = stablehlo.custom_call @f(%p) : (tensor<i1>) -> ({', '.join(['f32'] * many)})")
        case 5:
            return program(f"%0 = stablehlo.negate %p {{a = [{', '.join(['1'] * many)}]}} : tensor<i1>")
        case 6:
            return program(f"%0 = stablehlo.negate %p {{{', '.join(f'a{i} = {i}' for i in range(many))}}} : tensor<i1>")
        case 7:
            return f"func.func private @f({', '.join(['tensor<2xf32> {a = 1}'] * many)})"
        case 8:
            return program(f"%0 = stablehlo.constant dense<[{', '.join(['1.5'] * many)}]> : tensor<{many}xf32>")
        case 9:
            return program("%0 = stablehlo.constant dense<" + "[" * many + "1" + "]" * many + "> : tensor<2xf32>")
        case 10:
            names = (f"%{rng.choice('ab')}_{i % 3}_ = stablehlo.negate %p : tensor<i1>" for i in range(many))
            return "\n".join(program(name).replace("@main", f"@m{i}") for i, name in enumerate(names))
    return program(f"%0 = stablehlo.concatenate {', '.join(['%p'] * many)}, dim = 0 : () -> tensor<f32>")


def long(rng: Random) -> str:
    """A single long word."""
    size = rng.choice((100, 5000, 50_000))
    text = rng.choice(
        ('"' + "x" * size + '"', "9" * size, "0x" + "F" * size, "1." + "0" * size, "x" * size, '"' + "\\" * size)
    )
    text = rng.choice((text, "1e" + "9" * size, "#a.b<" + "-" * size, "//" + "x" * size, " " * size, '"\\0' * size))
    place = rng.randrange(5)
    if place == 0:
        return program(f"%0 = stablehlo.negate %p {{a = {text}}} : tensor<i1>")
    if place == 1:
        return program(f"%0 = stablehlo.negate %p : tensor<{text}xi1>")
    if place == 2:
        return program(f"%{text} = stablehlo.negate %p : tensor<i1> loc({text})")
    if place == 3:
        return program(f"%0 = stablehlo.constant dense<{text}> : tensor<2xf32>")
    return f"module @{text} {{}}"


def _nest(rng: Random, choices: tuple[tuple[str, str, str], ...]) -> str:
    depth = rng.choice(DEPTHS)
    if rng.random() < 0.3:
        layers = [rng.choice(choices) for _ in range(depth)]
        return "".join(layer[0] for layer in layers) + layers[-1][2] + "".join(layer[1] for layer in reversed(layers))
    opening, closing, middle = rng.choice(choices)
    return opening * depth + middle + closing * rng.choice((depth, depth, depth - 1, 0))


_KINDS: tuple[Callable[[Random], str], ...] = (
    *(nested_attribute, nested_attribute, nested_location, nested_region, shared, shared),
    *(huge_elements, huge_values, huge_operands, repeated, repeated, long),
)
