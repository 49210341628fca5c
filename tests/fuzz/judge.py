"""Judges one input. It is read, verified, printed and read again, serialized and read again, and, if that is cheap,
evaluated. Any error must be a `trivium.Error` with a position, and a valid program must be the same program after
printing and after serializing. Everything else is a `Finding`."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import trivium
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import Composite
from trivium.ir.text import parse, print_module
from trivium.ir.types import TensorType

SMALL = 256
"""The largest number of elements of a tensor in programs that are evaluated."""
LONGEST_PROGRAM = 60
MOST_DIMENSIONS = 64
"""NumPy's arrays cannot have more dimensions."""


class Slow(BaseException):
    """The time for an input is over. An alarm raises this, at any point of the program."""


class Finding(Exception):
    """A mistake of ours; mistakes with different causes have different `key`s."""

    def __init__(self, key: str, detail: str):
        super().__init__(key)
        self.key = key
        self.detail = detail


def judge_text(text: str) -> str:
    """Returns the outcome for a text, in one word; raises `Finding`."""
    with _stage("parse", _has_place_in_text):
        module = parse(text)
        # A program may itself say that its ops come from nowhere.
        return _judge(module, "", _has_op if "loc" in text else _has_op_and_source)
    return "refused"


def judge_artifact(data: bytes) -> str:
    """Returns the outcome for a file, in one word; raises `Finding`."""
    with _stage("deserialize", _has_offset):
        module = deserialize(data)
        return _judge(module, "from file: ", _has_op)
    return "refused"


def _judge(module: Module, prefix: str, has_place: Callable[[trivium.Error], bool]) -> str:
    with _stage(prefix + "print", _has_op):
        text = print_module(module)
    valid = False
    with _stage(prefix + "verify", has_place):
        module.verify()
        valid = True
    with _stage(prefix + "serialize", _has_op):
        data = serialize(module)
        if valid:
            with _stage(prefix + "deserialize again", _never):
                again = deserialize(data)
            # For some attributes that differ in text, artifacts have only one form, so only what they can express must
            # be kept.
            if serialize(again) != data and not _has_disguised_op(module):
                raise Finding(f"{prefix}bytecode: another program", difference(again, module)[:1000])
    if not valid:
        return "invalid"
    with _stage(prefix + "parse again", _never):
        again = parse(text)
        if print_module(again) != text:
            raise Finding(f"{prefix}text: another program", difference(again, module)[:1000])
    if _is_cheap(module):
        with _stage(prefix + "evaluate", _says_anything):
            kinds: Any = module.main.function_type.inputs
            evaluate(module, *[np.ones(kind.static_shape, kind.dtype) for kind in kinds])
            return "evaluated"
    return "valid"


@contextmanager
def _stage(name: str, has_place: Callable[[trivium.Error], bool]) -> Iterator[None]:
    """Suppresses errors of ours that have a position."""
    try:
        yield
    except Finding:
        raise
    except trivium.Error as error:
        if not has_place(error):
            message = re.sub(r"\d+|'[^']*'", "_", error.message.splitlines()[0])[:80]
            raise Finding(f"{name}: no place: {message}", "".join(traceback.format_exception(error))) from None
    except (Exception, Slow) as error:
        # Findings are told apart by the innermost function of `ir` in the traceback.
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if "/ir/" in frame.filename]
        place = f"{places[-1].filename.rpartition('/ir/')[2]} {places[-1].name}" if places else "nowhere"
        raise Finding(f"{name}: {type(error).__name__} in {place}", _shortened(error)) from None


def _shortened(error: BaseException) -> str:
    frames = traceback.format_exception(type(error), error, error.__traceback__, limit=-12)
    return "".join(frames)[:6000]


def _has_place_in_text(error: trivium.Error) -> bool:
    if isinstance(error, trivium.UnsupportedOpError):
        return bool(error.ops) and all(op.first for op in error.ops)
    return isinstance(error, trivium.ParseError) and error.line > 0 and error.column > 0


def _has_offset(error: trivium.Error) -> bool:
    if isinstance(error, trivium.UnsupportedOpError):
        return bool(error.ops) and all(op.first.startswith("byte ") for op in error.ops)
    return isinstance(error, trivium.ParseError) and "at byte " in error.message


def _has_op(error: trivium.Error) -> bool:
    return error.inside is not None or (isinstance(error, trivium.UnsupportedOpError) and bool(error.ops))


def _has_op_and_source(error: trivium.Error) -> bool:
    return error.inside is not None and error.source is not None


def _never(error: trivium.Error) -> bool:
    return False


def _says_anything(error: trivium.Error) -> bool:
    return bool(error.message)


def _has_disguised_op(module: Module) -> bool:
    """Whether a composite represents an op of CHLO, as which it is read."""
    return any(isinstance(op, Composite) and op.name.startswith("chlo.") for op in module.walk())


def _is_cheap(module: Module) -> bool:
    """Whether a program runs quickly: no loops, few ops, small tensors of known shape."""
    for count, op in enumerate(module.walk()):
        values: list[Any] = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
        if count > LONGEST_PROGRAM or op.NAME in ("stablehlo.while", "func.call", "chlo.scan"):
            return False
        if not all(_is_small(value.type) for value in values):
            return False
    return "main" in module.functions and not module.main.is_declaration


def _is_small(kind: Any) -> bool:
    return isinstance(kind, TensorType) and kind.is_static and kind.size <= SMALL and kind.rank <= MOST_DIMENSIONS
