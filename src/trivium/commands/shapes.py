"""`--shape`: fixes the dynamic sizes of a program, so that it can be compiled before it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trivium.compiler.dynamic import is_dynamic
from trivium.compiler.passes.refine import shape_arguments
from trivium.compiler.pipeline import inline, specialize
from trivium.executable import Parameter, Signature
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.types import TensorType

Shape = tuple[int, ...]

_SIZE = "[0-9]{1,18}"
"""A number of at most 18 digits, which 64 bits can hold."""


def with_shapes(module: Module, given: Sequence[str]) -> Module:
    """Returns the program for arguments of these shapes, each of which is written as `name=1x3x224x224`, with the
    argument's name or position. All dynamic sizes must become known."""
    static = inline(module)
    arguments = Signature.of(static.main).arguments
    shapes = [getattr(argument.type, "shape", None) for argument in arguments]
    for text in given:
        index, shape = _read(text, arguments)
        shapes[index] = shape
    named = [_name(argument, index) for index, argument in enumerate(arguments)]
    unknown = [name for name, shape in zip(named, shapes, strict=True) if shape is not None and None in shape]
    if unknown:
        raise Error(f"--shape has no sizes for the dynamic arguments {', '.join(unknown)}, expected all of them")
    by_value = [named[index] for index in shape_arguments(static.main)]
    if by_value:
        raise Error(f"sizes depend on the values of {', '.join(by_value)}, which --shape cannot fix")
    return specialize(static, shapes, {}) if is_dynamic(static) else static


def _read(text: str, arguments: Sequence[Parameter]) -> tuple[int, Shape]:
    """Returns the position of the argument that a text names, and the shape."""
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(rf"{_SIZE}([x,]{_SIZE})*", sizes):
        raise Error(f"--shape has {text!r}, expected a name and sizes, as in images=1x3x224x224")
    named = {_name(argument, index): index for index, argument in enumerate(arguments)}
    positions = {str(index): index for index in range(len(arguments))}
    index = (positions | named).get(name)
    if index is None:
        raise Error(f"--shape names {name}, expected any of {', '.join(named)}")
    shape, kind = tuple(map(int, re.split("[x,]", sizes))), arguments[index].type
    if not isinstance(kind, TensorType) or not _agrees(shape, kind):
        raise Error(f"--shape has {sizes} for {name}, which is {kind}")
    return index, shape


def _agrees(shape: Shape, kind: TensorType) -> bool:
    known = kind.shape
    return len(known) == len(shape) and all(b is None or a == b for a, b in zip(shape, known, strict=True))


def _name(argument: Parameter, index: int) -> str:
    return argument.name or str(index)
