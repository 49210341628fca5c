"""Transcendental functions in f32."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.code import Code


def rsqrt(code: Code, x: ll.Value) -> ll.Value:
    return code.div(1.0, code.intrinsic("llvm.sqrt", x))


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {"rsqrt": rsqrt}
