"""Optimized programs as XLA reads them: as text, and turned back into StableHLO, which our interpreter runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.compiler.targets import TARGET
from trivium.backends.plugin.hlo import Interface, Port, blocks, entry, optimized_program, shapes, special
from trivium.backends.plugin.hlo.computation import Computation
from trivium.compiler.pipeline import optimize
from trivium.compiler.target import Target
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse


def interface(module: Module, **known: Any) -> Interface:
    """Returns a program as one device runs it, unless more is known."""
    arguments, results = len(module.main.arguments), len(module.main.returned)
    usual: dict[str, Any] = {
        "name": "program",
        "replicas": 1,
        "partitions": 1,
        "arguments": [Port()] * arguments,
        "results": [Port()] * results,
        "results_in": [-1] * arguments,
        "donated": [False] * arguments,
    }
    return Interface(**usual | known)


def written(text: str | Module, target: Target = TARGET, **known: Any) -> bytes:
    """Returns a program as the plugin gives it to hosts."""
    module = parse(text) if isinstance(text, str) else text
    return optimized_program(optimize(module, target), target, interface(module, **known))


def module_of(program: bytes) -> bytes:
    """Returns the `HloModuleProto`, which is the first field of the message."""
    assert program[0] == 1 << 3 | 2
    size, shift, at = 0, 0, 1
    while True:
        size |= (program[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if program[at - 1] < 0x80:
            return program[at : at + size]


def shown(program: bytes) -> str:
    """Returns XLA's text of a program."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return _hlo.HloModule.from_serialized_hlo_module_proto(module_of(program)).to_string(options)


class _Plain(Computation):
    """Writes fusions as calls of their computations, and views as reshapes: StableHLO has neither."""

    def add(self, opcode: str, shape: bytes, *arguments: Any, fields: bytes = b"", **named: Any) -> int:
        if opcode == "fusion":
            operands, _, *rest = arguments
            return super().add("call", shape, operands, b"", *rest, **named)
        opcode = "reshape" if opcode == "bitcast" else opcode
        return super().add(opcode, shape, *arguments, **({"fields": fields} if fields else {}), **named)


@contextmanager
def _plainly() -> Iterator[None]:
    with (
        patch.object(blocks, "Computation", _Plain),
        patch.object(entry, "Computation", _Plain),
        patch.object(special, "Computation", _Plain),
        patch.object(shapes, "MOST_LITERAL_BYTES", 1 << 20),
    ):
        yield


def run(text: str | Module, arrays: Sequence[np.ndarray], **known: Any) -> tuple[np.ndarray, ...]:
    """Runs the program that XLA reads."""
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    with _plainly():
        program = module_of(written(text, **known))
    with mlir.make_ir_context():
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(program))
        read = module.operation.get_asm(print_generic_op_form=True)
    return evaluate(parse(read.replace("mhlo.erf", "chlo.erf")), *arrays)
