"""Options of the compiler that a host passes by name."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from trivium.backends.plugin.options import options_of
from trivium.compiler.stages import FLAGS, CompileOptions
from trivium.ir.errors import ParseError


def test_options_are_those_of_the_compiler() -> None:
    assert options_of("") == CompileOptions()
    for name in FLAGS:
        for text, value in (("1", True), ("True", True), ("0", False), ("false", False)):
            assert options_of(f"{name}={text}\n") == replace(CompileOptions(), **{name: value})
    assert options_of("fast_math=1\ntf32=1\nfast_math=0\n") == CompileOptions(tf32=True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("fast=1\n", "No such compile option: 'trivium_fast', expected one of trivium_fast_math, trivium_autotune"),
        ("threads=1\n", "No such compile option: 'trivium_threads', expected one of"),
        ("tf32=2\n", "the compile option trivium_tf32 has '2', expected True or False"),
        ("tf32\n", "the compile option trivium_tf32 has '', expected True or False"),
    ],
)
def test_other_options_are_errors(lines: str, message: str) -> None:
    with pytest.raises(ParseError, match=re.escape(message)):
        options_of(lines)
