"""The exact results accept what is right where TensorFlow is not, and nothing else."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
pytest.importorskip("tensorflow")

from tests.suites.tensorflow.draws import Call
from tests.suites.tensorflow.exact import is_exact

pytestmark = pytest.mark.tensorflow


def is_close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.allclose(mine, theirs, 1e-7, 1e-7, equal_nan=True))


@pytest.mark.parametrize(
    ("op", "arguments", "right"),
    [
        ("Igamma", {"a": 1e4, "x": 1e4}, 0.50132980833995),
        ("Igammac", {"a": 3e38, "x": 3e38}, 0.5),
        ("IgammaGradA", {"a": 1e4, "x": 1e4}, -0.00398945622088),
        ("RandomGammaGrad", {"alpha": 1e4, "sample": 1e4}, 1.0000166668333),
        ("Erf", {"x": -np.inf}, -1.0),
        ("SqrtGrad", {"y": 3e38, "dy": 3e38}, 0.5),
        ("Betainc", {"a": 1.0, "b": 3e38, "x": 1e-30}, 1.0),
        ("Polygamma", {"a": 1e4, "x": 10.0}, -np.inf),
        ("Polygamma", {"a": 1e4, "x": -1.0675435}, np.inf),
    ],
)
def test_special_functions(op: str, arguments: dict[str, float], right: float) -> None:
    call = Call(op, {name: np.full((1,), x) for name, x in arguments.items()}, {}, {}, {})
    theirs = np.array([-7.0])
    assert is_exact(call, [np.array([right])], [theirs], is_close)
    assert not is_exact(call, [np.array([0.25])], [theirs], is_close)


def test_matrices_are_compared_within_the_change_of_their_last_digits() -> None:
    hilbert = 1 / (np.arange(5)[:, None] + np.arange(5) + 1)
    call = Call("MatrixInverse", {"input": hilbert.astype(np.float32)}, {}, {}, {"adjoint": False})
    right = np.linalg.inv(hilbert.astype(np.float32).astype(np.float64))
    theirs = [np.zeros((5, 5), np.float32)]
    assert is_exact(call, [(right * 1.001).astype(np.float32)], theirs, is_close)
    assert not is_exact(call, [(right * 3).astype(np.float32)], theirs, is_close)
    singular = Call("MatrixInverse", {"input": np.ones((2, 2))}, {}, {}, {"adjoint": False})
    assert is_exact(singular, [np.full((2, 2), np.nan)], [np.zeros((2, 2))], is_close)


def test_a_row_with_a_nan_has_no_numbers() -> None:
    row = np.array([[1.0, np.nan, 2.0], [0.0, 0.0, -np.inf]])
    call = Call("Softmax", {"logits": row}, {}, {}, {})
    theirs = np.array([[0.0, np.nan, 0.0], [0.5, 0.5, 0.0]])
    assert is_exact(call, [np.array([[np.nan] * 3, [0.5, 0.5, 0.0]])], [theirs], is_close)
    assert not is_exact(call, [theirs], [theirs], is_close)
