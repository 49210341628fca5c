"""Every rule against TensorFlow itself."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
from tests.importers.tensorflow.cases import CASES, Case
from tests.importers.tensorflow.detection_cases import DETECTION_CASES
from tests.importers.tensorflow.edge_cases import EDGE_CASES
from tests.importers.tensorflow.fused_cases import FUSED_CASES
from tests.importers.tensorflow.image_cases import IMAGE_CASES
from tests.importers.tensorflow.more_cases import MORE_CASES
from tests.importers.tensorflow.random_cases import RANDOM_CASES
from tests.importers.tensorflow.search_cases import SEARCH_CASES
from tests.importers.tensorflow.segment_cases import SEGMENT_CASES
from tests.importers.tensorflow.uniform_cases import UNIFORM_CASES
from tests.importers.tensorflow.various_cases import VARIOUS_CASES
from tests.importers.tensorflow.xla_cases import XLA_CASES

pytestmark = pytest.mark.tensorflow


ALL_CASES = [
    *(*CASES, *MORE_CASES, *DETECTION_CASES, *EDGE_CASES, *FUSED_CASES, *IMAGE_CASES, *RANDOM_CASES),
    *(*SEARCH_CASES, *SEGMENT_CASES, *UNIFORM_CASES, *VARIOUS_CASES, *XLA_CASES),
]


def by_tensorflow(case: Case) -> object:
    """Returns what TensorFlow computes: by its kernel of the op, or by other ops if it has none for this processor."""
    inputs = [tf.constant(x) for x in case.inputs]
    try:
        return case.function(*inputs)
    except tf.errors.OpError:
        if case.composed is None:
            raise
        return case.composed(*inputs)


@pytest.mark.parametrize("case", ALL_CASES, ids=[f"{i}-{case.op}" for i, case in enumerate(ALL_CASES)])
def test_rule(case: Case) -> None:
    specs = (tf.TensorSpec(x.shape, x.dtype) for x in case.inputs)
    concrete = tf.function(case.function, autograph=False).get_concrete_function(*specs)
    module = trivium.from_tensorflow(concrete)
    require_equal(module, case)


def require_equal(module: trivium.Module, case: Case) -> None:
    """Requires that a program computes what TensorFlow does."""
    module.verify()
    expected = tf.nest.flatten(by_tensorflow(case))
    for got, wanted in zip(trivium.evaluate(module, *case.inputs), expected, strict=True):
        assert got.dtype == wanted.numpy().dtype
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-3 if got.dtype.itemsize < 4 else 1e-4, atol=1e-5)
