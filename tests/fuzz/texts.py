"""Mutations of programs as text. `mutant(seed, index)` always returns the same text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random

from tests.fuzz import seeds
from tests.fuzz.bombs import bomb

TOKEN = re.compile(r'\s+|"[^"\n]*"|[%@#!^]?[\w.$]+|->|.', re.DOTALL)
NUMBER = re.compile(r"-?\b\d+(?:\.\d*(?:[eE][-+]?\d+)?)?\b")
DIGITS = re.compile(r"\d+", re.ASCII)
"""Including extents and widths inside words."""
TYPE = re.compile(r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>|\b(?:bf16|f\d+\w*|u?i\d+|index)\b")
ATTRIBUTE = re.compile(r"= *(\[[^\[\]]*\]|#[\w.]+<[^<>]*>|\"[^\"]*\"|array<[^<>]*>|dense<[^<>]*>|-?[\w.]+)")

SMALL = ("-1", "0", "1", "2", "3", "4", "5", "7")
"""Replacements that change a program and leave it valid."""
NUMBERS = (
    *SMALL,
    *("64", "65", "100", "1000000000", "1.5", "-0.0", "1e400", "1.0e400", "1.0e-400", "nan"),
    *(str(1 << 31), str((1 << 31) - 1), str(1 << 32), str((1 << 63) - 1), str(1 << 63), str(-(1 << 63)), str(1 << 64)),
    *("-" + "9" * 30, "9" * 5000, "0x7FC00000", "0x", "0x" + "F" * 5000, "?", "00", "1x", "\u0661"),
)
TYPES = (
    *("tensor<f32>", "tensor<?xf32>", "tensor<0xf32>", "tensor<0x0x?xi1>", "tensor<*xf32>", "tensor<2x3xi1>"),
    *("tensor<1000000000x1000000000xf32>", "tensor<9223372036854775807xi8>", "tensor<4611686018427387904x4xf64>"),
    *("tensor<4x!quant.uniform<i8:f32, 1.0>>", "tensor<4x!quant.uniform<i8:f32:0, {1.0, 2.0}>>", "tensor<4xi7>"),
    *("tensor<4xi1000>", "tensor<2xindex>", "tensor<3xtf32>", "tensor<4xf4E2M1FN>", "tensor<8xi2>", "tensor<8xui4>"),
    *(
        "tensor<2xcomplex<f32>>",
        "tensor<2xcomplex<i8>>",
        "tensor<complex<f64>>",
        "tensor<4xfloat>",
        "tensor<4xtuple<>>",
    ),
    *("tensor<?xf32, #stablehlo.bounds<4>>", "tensor<?xf32, #stablehlo.bounds<1, 2>>", "tensor<4xf32, #a.b<c>>"),
    *(
        "tensor<4xf32, [[[1]]]>",
        "tuple<>",
        "tuple<tensor<f32>, tuple<tensor<i1>>>",
        "!stablehlo.token",
        "none",
        "index",
    ),
    *(
        "!stablehlo.future<tensor<f32>>",
        "(tensor<f32>) -> ()",
        "() -> (() -> ())",
        "f32",
        "i1",
        "memref<4xf32>",
        "!a.b",
    ),
    f"tensor<{'1x' * 70}f32>",
    f"tensor<{'2x' * 64}f32>",
)
ATTRIBUTES = (
    *(
        "1 : i64",
        "-1",
        "[]",
        "[1, 2]",
        "[[1, 2], [3]]",
        "{}",
        '"x"',
        "unit",
        "true",
        "@main",
        "@a::@b",
        "#a.b<c>",
        "f32",
    ),
    *("dense<1> : tensor<2xi64>", "dense<> : tensor<0x2xi64>", "dense<[[1, 2]]> : tensor<1x2xi64>", "array<i64>"),
    *("array<i64: 1, 1>", "array<i1: true>", "array<i64: 9223372036854775807, 2>", "array<i64: -9223372036854775808>"),
    *("dense<true> : tensor<i1>", "dense<0x7FC00000> : tensor<2xf32>", "1.0 : f32", "loc(unknown)", "#stablehlo.dot<>"),
    *(
        "#stablehlo<precision HIGH>",
        "#stablehlo.channel_handle<handle = 1, type = 1>",
        "dense_resource<r> : tensor<f32>",
    ),
    *("#stablehlo.gather<offset_dims = [9223372036854775807]>", "dense<0.0> : tensor<1000000000x1000000000xf32>"),
    *(
        "dense<0> : tensor<1000000000xi64>",
        "dense<0> : tensor<1000000000x2xi64>",
        "dense<0> : tensor<9999999999xindex>",
    ),
    *(
        "dense<> : tensor<9999999999x0xi64>",
        "dense<true> : tensor<1000000000xi1>",
        "[dense<0> : tensor<9999999999xindex>]",
    ),
    *("affine_map<(d0) -> (d0)>", "(tensor<f32>) -> ()", "#stablehlo.bounds<?>", "dense<1.0> : tensor<?xf32>"),
)
CHARACTERS = "\0\t\n\r \"'#%!@^$&*()[]{}<>:;,.-+=/\\|0179aexz_éß漢\u202e\ud800\U0001f600\x7f\x85\u2028"

Mutation = Callable[[Random, str], str]


def mutant(seed: int, index: int) -> str:
    """Returns the text with that number."""
    rng = Random(f"{seed}:text:{index}")
    if rng.random() < 0.04:
        return bomb(rng)
    text = rng.choice(seeds.texts())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(_MUTATIONS)(rng, text)
    return text


@cache
def _words() -> list[str]:
    return sorted({token for text in seeds.texts() for token in TOKEN.findall(text) if not token.isspace()})


def change_tokens(rng: Random, text: str) -> str:
    """Deletes, duplicates, swaps, replaces and inserts tokens."""
    tokens = TOKEN.findall(text) or [""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        here, there = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0:
                tokens[here] = ""
            case 1:
                tokens[here] *= rng.choice((2, 2, 3, 100))
            case 2:
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case 3:
                tokens[here] = rng.choice(_words())
            case 4:
                tokens[here] += f" {rng.choice(_words())} "
    return "".join(tokens)


def change_characters(rng: Random, text: str) -> str:
    """Replaces, inserts and deletes single characters."""
    for _ in range(rng.choice((1, 1, 2, 8))):
        here = rng.randrange(len(text) + 1)
        new = rng.choice((rng.choice(CHARACTERS), chr(rng.randrange(128)), ""))
        text = text[:here] + new + text[here + rng.randrange(2) :]
    return text


def _replacing(pattern: re.Pattern[str], choices: tuple[str, ...], group: int = 0) -> Mutation:
    def replace(rng: Random, text: str) -> str:
        """Replaces one match, or all equal ones, by another of the same kind."""
        spans = [match.span(group) for match in pattern.finditer(text)]
        if not spans:
            return change_characters(rng, text)
        start, end = rng.choice(spans)
        new = rng.choice((*choices, text[slice(*rng.choice(spans))]))
        if rng.random() < 0.5:
            return text.replace(text[start:end], new)
        return text[:start] + new + text[end:]

    return replace


def splice(rng: Random, text: str) -> str:
    """Joins the beginning of one program and the end of another."""
    other = rng.choice(seeds.texts())
    lines, others = text.splitlines(keepends=True), other.splitlines(keepends=True)
    if rng.random() < 0.5:
        return "".join(lines[: rng.randrange(len(lines) + 1)] + others[rng.randrange(len(others)) :])
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other)) :]


def cut(rng: Random, text: str) -> str:
    """Removes a piece, or repeats it; most often the end."""
    start = rng.randrange(len(text) + 1)
    end = len(text) if rng.random() < 0.4 else min(len(text), start + rng.randrange(200))
    return text[:start] + text[start:end] * rng.choice((0, 0, 0, 2, 20)) + text[end:]


def change_lines(rng: Random, text: str) -> str:
    """Removes, repeats and exchanges lines."""
    lines = text.splitlines(keepends=True) or [""]
    here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            del lines[here]
        case 1:
            lines.insert(there, lines[here])
        case 2:
            lines[here], lines[there] = lines[there], lines[here]
    return "".join(lines)


_MUTATIONS: tuple[Mutation, ...] = (
    change_tokens,
    change_tokens,
    change_characters,
    *[_replacing(NUMBER, NUMBERS)] * 3,
    *[_replacing(NUMBER, SMALL)] * 3,
    *[_replacing(DIGITS, SMALL)] * 3,
    *[_replacing(TYPE, ())] * 3,
    *[_replacing(TYPE, TYPES)] * 4,
    *[_replacing(ATTRIBUTE, ATTRIBUTES, 1)] * 3,
    splice,
    cut,
    change_lines,
)
