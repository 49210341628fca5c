"""Parts of pretty forms with a special syntax: slice ranges, windows, dimension numbers, precisions, and the ways in
which types are written. Each is a pair of functions, one to print and one to parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trivium.ir.attributes import ENUMERATIONS, STRUCTS
from trivium.ir.text.assembly import (
    DIRECTIVES,
    TYPE_RULES,
    Directive,
    Draft,
    TypeRule,
    functional_text,
    plain_text,
)
from trivium.ir.text.lexer import WORD, symbol_text, token
from trivium.ir.text.structs import (
    convolution_text,
    is_plain_convolution,
    read_body,
    read_convolution,
    read_member,
    struct_body,
)
from trivium.ir.types import ComplexType, FunctionType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from trivium.ir.declare import Op
    from trivium.ir.ops.dot_general import DotGeneral
    from trivium.ir.ops.indexing import Slice
    from trivium.ir.text.parser import Parser
    from trivium.ir.text.printer import Printer

_FORMAT = token(r"e\d{1,9}m\d{1,9}")


# `[0:2, 1:3:2]`


def _print_slice_ranges(op: Slice, printer: Printer) -> str:
    ranges = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    return f"[{', '.join(f'{a}:{b}' if step == 1 else f'{a}:{b}:{step}' for a, b, step in ranges)}]"


def _parse_slice_ranges(parser: Parser, draft: Draft) -> None:
    def span() -> tuple[int, int, int]:
        start = parser.integer()
        parser.expect(":")
        limit = parser.integer()
        return start, limit, parser.integer() if parser.accept(":") else 1

    spans = parser.listed(span, "[", "]")
    for place, name in enumerate(("start_indices", "limit_indices", "strides")):
        draft.attributes[name] = tuple(part[place] for part in spans)


DIRECTIVES["slice-ranges"] = Directive(
    ("start_indices", "limit_indices", "strides"),
    _print_slice_ranges,
    _parse_slice_ranges,
    lambda op: len(op.start_indices) == len(op.limit_indices) == len(op.strides),
)


# `e5m10`


def _parse_exponent_mantissa(parser: Parser, draft: Draft) -> None:
    exponent, _, mantissa = parser.take(_FORMAT, "a format, as in e5m10")[1:].partition("m")
    draft.attributes |= {"exponent_bits": int(exponent), "mantissa_bits": int(mantissa)}


DIRECTIVES["exponent-mantissa"] = Directive(
    ("exponent_bits", "mantissa_bits"),
    lambda op, printer: f"e{op.exponent_bits}m{op.mantissa_bits}",
    _parse_exponent_mantissa,
    lambda op: all(0 <= bits < 10**9 for bits in (op.exponent_bits, op.mantissa_bits)),
)


# `batching_dims = [0] x [0], contracting_dims = [2] x [1]`


def _print_dot_dimensions(op: DotGeneral, printer: Printer) -> str:
    numbers = op.dot_dimension_numbers
    batching = (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)
    contracting = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
    text = f"contracting_dims = {plain_text(contracting[0])} x {plain_text(contracting[1])}"
    if any(batching):
        text = f"batching_dims = {plain_text(batching[0])} x {plain_text(batching[1])}, {text}"
    return text


def _parse_dot_dimensions(parser: Parser, draft: Draft) -> None:
    def pair(word: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        parser.expect_word(word)
        parser.expect("=")
        lhs = parser.integers()
        parser.expect_word("x")
        return lhs, parser.integers()

    batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    if parser.at("batching_dims"):
        batching = pair("batching_dims")
        parser.expect(",")
    numbers: Any = STRUCTS["stablehlo.dot"]
    draft.attributes["dot_dimension_numbers"] = numbers(*batching, *pair("contracting_dims"))


DIRECTIVES["dot-dimensions"] = Directive(("dot_dimension_numbers",), _print_dot_dimensions, _parse_dot_dimensions)


# `, precision = [DEFAULT, HIGH]`, `, algorithm = <...>`


def _print_precision(op: DotGeneral, printer: Printer) -> str:
    return "" if op.precision_config is None else f", precision = {plain_text(op.precision_config)}"


def _parse_precision(parser: Parser, draft: Draft) -> None:
    if not parser.accept_before_word(",", "precision"):
        return
    parser.expect("=")
    kind = ENUMERATIONS["stablehlo.precision"]
    draft.attributes["precision_config"] = tuple(parser.listed(lambda: read_member(parser, kind), "[", "]"))


def _print_algorithm(op: DotGeneral, printer: Printer) -> str:
    return "" if op.algorithm is None else f", algorithm = {struct_body(op.algorithm)}"


def _parse_algorithm(parser: Parser, draft: Draft) -> None:
    if parser.accept_before_word(",", "algorithm"):
        parser.expect("=")
        draft.attributes["algorithm"] = read_body(parser, STRUCTS["stablehlo.dot_algorithm"])


DIRECTIVES["precision"] = Directive(("precision_config",), _print_precision, _parse_precision)
DIRECTIVES["algorithm"] = Directive(("algorithm",), _print_algorithm, _parse_algorithm)


# `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, `stride = [2, 2], pad = [[0, 1], [0, 1]]`


def _parse_convolution_dimensions(parser: Parser, draft: Draft) -> None:
    draft.attributes["dimension_numbers"] = read_convolution(parser)


DIRECTIVES["convolution-dimensions"] = Directive(
    ("dimension_numbers",),
    lambda op, printer: convolution_text(op.dimension_numbers),
    _parse_convolution_dimensions,
    lambda op: is_plain_convolution(op.dimension_numbers),
)

_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _print_window(op: Op, printer: Printer) -> str:
    given = ((word, op.attributes.get(name)) for word, name in _WINDOW.items())
    return ", ".join(f"{word} = {plain_text(value)}" for word, value in given if value is not None)


def _parse_window(parser: Parser, draft: Draft) -> None:
    while not parser.at("}"):
        pos = parser.pos
        word = parser.take(WORD, f"one of {', '.join(_WINDOW)}")
        if word not in _WINDOW or _WINDOW[word] in draft.attributes:
            raise parser.error(f"'{word}' is given twice, or is not one of {', '.join(_WINDOW)}", pos)
        parser.expect("=")
        draft.attributes[_WINDOW[word]] = _window_value(parser, word)
        if not parser.accept(","):
            break


def _window_value(parser: Parser, word: str) -> tuple[object, ...]:
    if word == "pad":
        pos = parser.pos
        pairs = tuple(parser.listed(parser.integers, "[", "]"))
        if any(len(pair) != 2 for pair in pairs):
            raise parser.error("the padding of a dimension must be a pair, as in [[1, 1]]", pos)
        return pairs
    if word != "reverse":
        return parser.integers()
    return tuple(parser.listed(lambda: _flag(parser), "[", "]"))


def _flag(parser: Parser) -> bool:
    word = parser.try_take(WORD)
    if word not in (None, "true", "false"):
        raise parser.error(f"has {word}, expected true or false")
    return word == "true" if word else parser.integer() != 0


DIRECTIVES["window"] = Directive(tuple(_WINDOW.values()), _print_window, _parse_window)


# `@target`


def _parse_target(parser: Parser, draft: Draft) -> None:
    draft.attributes["call_target_name"] = parser.symbol_name()


DIRECTIVES["target"] = Directive(
    ("call_target_name",), lambda op, printer: symbol_text(op.call_target_name), _parse_target
)


# Types: `tensor<4xf32>` for all operands and the result


def _print_same(op: Op, printer: Printer) -> str:
    kind = op.results[0].type
    if any(operand.type is not kind for operand in op.operands):
        return functional_text(op, printer)
    return printer.type(kind)


def _parse_same(parser: Parser, draft: Draft) -> None:
    kind = parser.type()
    if isinstance(kind, FunctionType):
        draft.operand_types, draft.result_types = kind.inputs, kind.results
    else:
        draft.operand_types, draft.result_types = [kind] * len(draft.operands), [kind]


TYPE_RULES["same"] = TypeRule(_print_same, _parse_same)


# Only the types of the operands, for ops without results


def _parse_operands(parser: Parser, draft: Draft) -> None:
    draft.operand_types, draft.result_types = parser.types(), ()


TYPE_RULES["operands"] = TypeRule(lambda op, printer: printer.types(op.operand_types), _parse_operands)


# Only the types of the results


def _parse_result(parser: Parser, draft: Draft) -> None:
    draft.result_types = parser.types()


TYPE_RULES["result"] = TypeRule(lambda op, printer: printer.types(op.result_types), _parse_result)


# `tensor<i1>, tensor<4xf32>`: the type of the predicate, and the type of all others


def _print_select(op: Op, printer: Printer) -> str:
    pred, *branches = op.operand_types
    kind = op.results[0].type
    if any(branch is not kind for branch in branches):
        return functional_text(op, printer)
    return f"{printer.type(pred)}, {printer.type(kind)}"


def _parse_select(parser: Parser, draft: Draft) -> None:
    pos = parser.pos
    kinds = parser.types()
    if len(kinds) == 1 and isinstance(kinds[0], FunctionType):
        draft.operand_types, draft.result_types = kinds[0].inputs, kinds[0].results
    elif len(kinds) == 2:
        draft.operand_types, draft.result_types = [kinds[0], kinds[1], kinds[1]], [kinds[1]]
    else:
        raise parser.error(f"has {len(kinds)} types, expected those of predicate and result, or a function type", pos)


TYPE_RULES["select"] = TypeRule(_print_select, _parse_select)


# `tensor<4xcomplex<f32>>`: the type of the result, which determines that of the parts


def _real(kind: Type) -> Type | None:
    if isinstance(kind, TensorType) and isinstance(kind.element_type, ComplexType):
        return kind.with_element(kind.element_type.element_type)
    return None


def _print_complex(op: Op, printer: Printer) -> str:
    kind = op.results[0].type
    if any(operand.type is not _real(kind) for operand in op.operands):
        return functional_text(op, printer)
    return printer.type(kind)


def _parse_complex(parser: Parser, draft: Draft) -> None:
    pos = parser.pos
    _parse_same(parser, draft)
    if isinstance(draft.result_types, list):
        real = _real(draft.result_types[0])
        if real is None:
            raise parser.error(f"has type {draft.result_types[0]}, expected a tensor of complex numbers", pos)
        draft.operand_types = [real] * len(draft.operands)


TYPE_RULES["complex"] = TypeRule(_print_complex, _parse_complex)


# `tuple<...>`: the type of the result, which determines those of the operands


def _parse_tuple(parser: Parser, draft: Draft) -> None:
    pos = parser.pos
    kind = parser.type()
    if not isinstance(kind, TupleType):
        raise parser.error(f"has type {kind}, expected a tuple type", pos)
    draft.operand_types, draft.result_types = kind.types, [kind]


def _print_tuple(op: Op, printer: Printer) -> str:
    return printer.type(op.results[0].type)


TYPE_RULES["tuple"] = TypeRule(_print_tuple, _parse_tuple)


# `tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>`, as CHLO writes it


def _print_arrow(op: Op, printer: Printer) -> str:
    return f"{printer.types(op.operand_types)} -> {_results(op.result_types, printer)}"


def _results(kinds: Sequence[Type], printer: Printer) -> str:
    return printer.types(kinds) if len(kinds) == 1 else f"({printer.types(kinds)})"


def _parse_arrow(parser: Parser, draft: Draft) -> None:
    kinds = parser.types()
    if len(kinds) == 1 and isinstance(kinds[0], FunctionType):
        draft.operand_types, draft.result_types = kinds[0].inputs, kinds[0].results
        return
    parser.expect("->")
    draft.operand_types, draft.result_types = kinds, parser.type_list()


TYPE_RULES["arrow"] = TypeRule(_print_arrow, _parse_arrow)
