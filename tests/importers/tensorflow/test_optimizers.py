"""The ops of optimizers beside TensorFlow's kernels, over several steps and variables. Each number is within a few
roundings of TensorFlow's, as measured by the largest operand of its last sum."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow
from trivium.importers.tensorflow.context import rule
from trivium.importers.tensorflow.schema import schema_of

pytestmark = pytest.mark.tensorflow

STEPS = 3
SHAPES = ((5,), (2, 3))

NUMBERS = {
    "lr": 0.1, "alpha": 0.1, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.99, "beta": 0.9,
    "beta1_power": 0.7, "beta2_power": 0.9, "l1": 0.05, "l2": 0.02, "l2_shrinkage": 0.01, "lr_power": -0.5,
    "logbase": 0.7, "sign_decay": 0.9,
}  # fmt: skip

STARTS = {"mg": 0.0, "m": 0.0, "mom": 0.0, "linear": 0.0, "gradient_accumulator": 0.0}
"""What remembers no squares starts from zero, everything else from one."""

FLAGS = {"use_nesterov": (False, True), "update_slots": (True, False), "multiply_linear_by_lr": (False, True)}

CASES = [
    (op, flag, value)
    for op in rule
    if op.startswith(("ResourceApply", "ResourceSparseApply"))
    for flag in [next((x for x in FLAGS if x in schema_of(op).attributes), "use_locking")]
    for value in FLAGS.get(flag, (False,))
]


@pytest.mark.parametrize(("op", "flag", "value"), CASES, ids=[f"{op}-{flag}-{value}" for op, flag, value in CASES])
def test_optimizer(op: str, flag: str, value: bool) -> None:
    def after(compiler: Callable[..., Any]) -> list[np.ndarray]:
        random = np.random.default_rng(7)
        variables = [_variables(op, shape, random) for shape in SHAPES]

        def step(count: Any, *gradients: Any) -> None:
            for held, gradient in zip(variables, gradients, strict=True):
                given = {name: x.handle for name, x in held.items()}
                given |= {name: tf.constant(x) for name, x in NUMBERS.items() if name in _inputs(op)}
                given |= {"global_step": count} if "global_step" in _inputs(op) else {}
                given |= {"indices": _rows(gradient)} if "indices" in _inputs(op) else {}
                name = "delta" if "delta" in _inputs(op) else "grad"
                getattr(tf.raw_ops, op)(**given, **{name: gradient, flag: value})

        compiled = compiler(step)
        for number in range(STEPS):
            gradients = [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]
            compiled(tf.constant(number + 1, tf.int64), *map(tf.constant, gradients))
        return [x.numpy() for held in variables for x in held.values()]

    got = after(lambda f: trivium.tensorflow.function(f, autograph=False, fallback=False))
    wanted = after(lambda f: tf.function(f, autograph=False))
    start = np.random.default_rng(7)
    before = [x.numpy() for shape in SHAPES for x in _variables(op, shape, start).values()]
    for mine, theirs, first in zip(got, wanted, before, strict=True):
        assert np.isfinite(theirs).all()
        scale = np.maximum(np.abs(theirs), np.abs(first)).max()
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=4 * STEPS * float(np.spacing(np.float32(scale))))
    assert any((x != y).any() for x, y in zip(wanted, before, strict=True))


def _rows(gradient: Any) -> Any:
    """The rows that a gradient is of: the first one twice, and the last one not at all."""
    return tf.constant([0, *range(gradient.shape[0] - 1)], tf.int32)


def _inputs(op: str) -> list[str]:
    return [name for name, _ in schema_of(op).inputs]


def _variables(op: str, shape: tuple[int, ...], random: np.random.Generator) -> dict[str, Any]:
    """The variables of an op: those of its first inputs that are neither numbers nor gradients."""
    others = (*NUMBERS, "grad", "delta", "global_step", "indices")
    names = [x for x in _inputs(op) if x not in others]
    starts = [random.standard_normal(shape) if x == "var" else np.full(shape, STARTS.get(x, 1.0)) for x in names]
    return {name: tf.Variable(start.astype(np.float32)) for name, start in zip(names, starts, strict=True)}
