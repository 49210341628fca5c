"""An example of each op for the reference: its text, run by the interpreter, with the inputs and the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from docs.programs import PROGRAMS
from tests.ir.ops.records import Record, collect
from trivium.ir.declare import ELEMENTWISE, Op
from trivium.ir.interpreter import Interpreter
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse, print_module
from trivium.ir.types import F32, I32, I64, TensorType, is_quantized

ELEMENTS = 8
"""The approximate number of elements in an example; arrays with more than twice as many show only the first ones."""


def example(cls: type[Op]) -> str:
    """Returns a program as MLIR text: an op between comments with the values, or a whole program with its results."""
    program = PROGRAMS.get(cls.NAME)
    return f"```mlir\n{_of_record(cls) if program is None else _of_program(program)}\n```"


def _of_record(cls: type[Op]) -> str:
    """Returns the op of the record that is the best example."""
    record = min(map(_shortened, _records()[cls]), key=_distance)
    module = record.module()
    results = Interpreter(module, seed=0).call("main", record.arrays)
    lines = print_module(module).splitlines()[2:-3]
    lines = [line.removeprefix("    ") for line in lines]
    given = [f"// %arg{index}: {_text(array)}" for index, array in enumerate(record.arrays)]
    names = _names(lines, len(results))
    return "\n".join(
        [*given, *lines, *(f"// {name}: {_text(value)}" for name, value in zip(names, results, strict=True))]
    )


def _names(lines: Sequence[str], count: int) -> list[str]:
    """Returns the names of the results in the op's text."""
    names = lines[0].partition(" = ")[0].split(", ")
    return names if len(names) == count else [f"{names[0].partition(':')[0]}#{index}" for index in range(count)]


def _of_program(program: Any) -> str:
    """Returns the program's text, and what each process returns."""
    module = parse(program.text)
    module.verify()
    types: Any = module.main.function_type.inputs
    given = [
        [np.asarray(value, kind.dtype) for value, kind in zip(values, types, strict=True)]
        for values in program.arguments
    ]
    results = run_parallel(module, [["main"]] * len(given), given, program.infeed)
    comments = [
        f"// {'' if len(given) == 1 else f'replica {replica} '}returns {', '.join(map(_text, values)) or 'nothing'}"
        for replica, values in enumerate(results)
    ]
    taken = [
        f"// {'' if len(given) == 1 else f'replica {replica} '}receives {', '.join(map(_text, values))}"
        for replica, values in enumerate(given)
        if values
    ]
    return "\n".join([*taken, print_module(module).rstrip(), *comments])


@cache
def _records() -> dict[type[Op], list[Record]]:
    found: dict[type[Op], list[Record]] = defaultdict(list)
    for record in collect():
        found[record.op].append(record)
    return dict(found)


def _shortened(record: Record) -> Record:
    """Reduces the example of an elementwise op to four elements."""
    shapes = {array.shape for array in record.arrays}
    if not {ELEMENTWISE} <= record.op.TRAITS or record.types or len(shapes) > 1 or record.arrays[0].size < ELEMENTS:
        return record
    few = np.linspace(0, record.arrays[0].size - 1, 6).astype(int)[1:-1]
    result = record.result.with_shape(few.shape) if record.result else None
    return replace(record, operands=tuple(array.reshape(-1)[few] for array in record.arrays), result=result)


def _distance(record: Record) -> int:
    """Returns how far a record is from a good example, which has a few plain numbers and a short text."""
    main = record.module().main
    signature = main.function_type
    kinds = [kind for kind in (*signature.inputs, *signature.results) if isinstance(kind, TensorType)]
    odd = sum(kind.element_type not in (F32, I32, I64) for kind in kinds)
    odd += 2 * any(is_quantized(kind.element_type) for kind in kinds)
    odd += sum(not array.size or bool((array != array).any()) for array in record.arrays)
    size = sum(kind.size for kind in kinds if kind.is_static)
    return abs(size - ELEMENTS) + ELEMENTS * (odd + 2 * (size < ELEMENTS // 2)) + 2 * len(list(main.walk()))


def _text(value: Any) -> str:
    """Formats elements like NumPy, in one line."""
    array = np.asarray(value)
    if array.dtype.name not in np.sctypeDict:  # of ml_dtypes
        array = array.astype(np.int64 if "int" in array.dtype.name else np.float64)
    if array.size > 2 * ELEMENTS:
        first = ", ".join(_text(element) for element in array.reshape(-1)[:4])
        return f"{array.size} elements: {first}, ..."
    return " ".join(np.array2string(array, separator=", ", precision=4, max_line_width=1000).split())
