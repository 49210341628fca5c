"""Programs for several sizes, whose results end at arguments: what is needed is the same bits as without ends, and most
of the rest is never written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import trivium
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget, host
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize

ONE = host()
EAGER = replace(host(), split_cost=0.0, wake_cost=0.0, piece_cost=1.0).with_threads(3)
"""A processor on which every loop is worth splitting."""

UNWRITTEN = -77.0


def ran(text: str, target: CpuTarget, given: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The result of a program, in memory that has had another number everywhere."""
    module = trivium.parse(text)
    optimize(module, target)
    executable = CpuExecutable(assemble_program(lower(module, target), target))
    result = np.full(shape, UNWRITTEN, np.float32)
    executable.execute_at([x.ctypes.data for x in (*given, result)])
    return result


def require(body: str, kinds: list[str], shape: tuple[int, ...], ends: list[int], extents: list[int]) -> float:
    """Checks a program whose result ends in dimensions at these extents, which are arguments with these numbers.
    Returns which share of the rest has not been written."""
    count = len(kinds)
    arguments = [f"%x{n}: tensor<{kind}>" for n, kind in enumerate(kinds)]
    arguments += [f"%e{n}: tensor<i64> {{trivium.extent = array<i64: 0, {max(shape)}>}}" for n in range(len(extents))]
    result = f"tensor<{'x'.join(map(str, shape))}xf32>"
    stated = f"{{trivium.ends = array<i64: {', '.join(str(end + count if end >= 0 else -1) for end in ends)}>}}"
    random = np.random.default_rng(0)
    given = [random.standard_normal(tuple(map(int, kind.split("x")[:-1]))).astype(np.float32) for kind in kinds] + [
        np.array(extent, np.int64) for extent in extents
    ]
    head = f"func.func @main({', '.join(arguments)}) -> "
    rest = f"{{ {body} return %r : {result} }}"
    needed = np.zeros(shape, bool)
    needed[tuple(slice(extents[end] if end >= 0 else None) for end in ends)] = True
    shares = []
    for target in (ONE, EAGER):
        whole = ran(f"{head}{result} {rest}", target, given, shape)
        assert not np.any(whole == UNWRITTEN)
        found = ran(f"{head}({result} {stated}) {rest}", target, given, shape)
        np.testing.assert_array_equal(found[needed], whole[needed])
        shares.append(np.mean(found[~needed] == UNWRITTEN) if not needed.all() else 1.0)
    return float(min(shares))
