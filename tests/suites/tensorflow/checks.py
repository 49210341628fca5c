"""One call of an op, by TensorFlow's own kernels and by Trivium, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import trivium
import trivium.tensorflow
from tests.suites.tensorflow.draws import Call
from tests.suites.tensorflow.exact import is_exact
from tests.suites.tensorflow.ops import called

EQUAL, EXACT, REFUSED, WRONG, INVALID = "equal", "exact", "refused", "wrong", "invalid"

TOLERANCES = {2: 2e-2, 1: 0.2, 4: 2e-4, 8: 1e-7}
"""By the bytes of a real number."""


BY_XLA = frozenset({"ApproxTopK"})
"""Where TensorFlow's own kernel ignores an attribute, so that its results do not have the shape that it infers."""


class Verdict(NamedTuple):
    """`kind`: equal, exact (where TensorFlow is not), refused (by Trivium), wrong, or invalid (refused by
    TensorFlow)."""

    kind: str
    reason: str = ""


def checked(call: Call) -> Verdict:
    """Runs a call of an op both ways."""
    return _verdict(
        lambda compiler: _called(call, compiler),
        lambda *results: is_exact(call, results[0], results[1], _is_close),
        _by_xla if call.op in BY_XLA else _traced,
    )


def checked_function(function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> Verdict:
    """Runs a function of arrays both ways."""
    return _verdict(lambda compiler: _flat(compiler(function)(*map(tf.constant, inputs))))


def _verdict(
    run: Callable[[Callable[..., Any]], list[np.ndarray]],
    is_right: Callable[[list[np.ndarray], list[np.ndarray]], bool] = lambda mine, theirs: False,
    reference: Callable[[Callable[..., Any]], Any] | None = None,
) -> Verdict:
    try:
        # Traced first: where shapes do not fit together, a kernel may end the process.
        wanted = run(reference or _traced)
    except Exception as error:  # various types: the arguments are drawn at random
        return Verdict(INVALID, _line(error))
    try:
        got = run(lambda function: trivium.tensorflow.function(_traced(function), fallback=False))
    except trivium.Error as error:
        return Verdict(REFUSED, _line(error))
    except Exception as error:
        return Verdict(WRONG, f"{type(error).__name__}: {_line(error)}")
    verdict = compared(got, wanted)
    is_alike = [(x.dtype, x.shape) for x in got] == [(x.dtype, x.shape) for x in wanted]
    return Verdict(EXACT) if verdict.kind == WRONG and is_alike and is_right(got, wanted) else verdict


def _traced(function: Callable[..., Any]) -> Any:
    """Returns a `tf.function`. Some cases are one: ops for which only XLA has a kernel."""
    return function if hasattr(function, "get_concrete_function") else tf.function(function, autograph=False)


def _by_xla(function: Callable[..., Any]) -> Any:
    return tf.function(function, autograph=False, jit_compile=True)


def compared(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> Verdict:
    """Compares results, with a tolerance for those of floats."""
    if len(got) != len(wanted):
        return Verdict(WRONG, f"{len(got)} results, expected {len(wanted)}")
    for index, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return Verdict(WRONG, f"{mine.dtype}{mine.shape}, expected {theirs.dtype}{theirs.shape}")
        if not _is_close(mine, theirs):
            return Verdict(WRONG, f"result {index}: {_first_difference(mine, theirs)}")
    return Verdict(EQUAL)


def _called(call: Call, compiler: Callable[..., Any]) -> list[np.ndarray]:
    """Returns the results of a call, then the values of its variables."""
    variables = {name: tf.Variable(tf.constant(x)) for name, x in call.variables.items()}
    names = list(call.operands)

    def function(*operands: Any) -> Any:
        given = {name: x.handle for name, x in variables.items()}
        given |= {name: tf.constant(x) for name, x in call.known.items()}
        given |= dict(zip(names, operands, strict=True))
        results = called(call.op, **given, **call.attributes)
        return None if isinstance(results, tf.Operation) else results

    compiled = compiler(function)
    operands = tf.nest.map_structure(tf.constant, list(call.operands.values()))
    return [*_flat(compiled(*operands)), *(x.numpy() for x in variables.values())]


def _flat(results: Any) -> list[np.ndarray]:
    return [x.numpy() for x in tf.nest.flatten(results) if x is not None]


def _is_close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    if theirs.dtype.kind in "biuS":
        return np.array_equal(mine, theirs)
    width = theirs.dtype.itemsize // (2 if theirs.dtype.kind == "c" else 1)
    tolerance = TOLERANCES[width]
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return bool(np.allclose(mine.astype(wide), theirs.astype(wide), tolerance, tolerance, equal_nan=True))


def _first_difference(mine: np.ndarray, theirs: np.ndarray) -> str:
    for place in np.ndindex(theirs.shape):
        if not _is_close(mine[place], theirs[place]):
            return f"{mine[place]} at {place}, expected {theirs[place]}"
    return "differs"


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join(line.strip() for line in lines[:2] if "while:" not in line)
