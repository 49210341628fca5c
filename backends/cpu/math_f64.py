"""Transcendental functions in f64 that the C library lacks, or that are worth having in lanes."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.cpu.code import Code


def rsqrt(code: Code, x: ll.Value) -> ll.Value:
    return code.div(1.0, code.intrinsic("llvm.sqrt", x))


def logistic(code: Code, x: ll.Value) -> ll.Value:
    """1 / (1 + exp(-x))"""
    return code.div(1.0, code.add(code.each_lane("exp", code.builder.fneg(x)), 1.0))


FUNCTIONS: dict[str, Callable[..., ll.Value]] = {"rsqrt": rsqrt, "logistic": logistic}
