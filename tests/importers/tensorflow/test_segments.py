"""Segments whose number depends on data, compiled in parts."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow
from tests.importers.tensorflow.cases import Case
from tests.importers.tensorflow.segment_cases import SEGMENT_CASES, TABLE, lookup_step

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("case", SEGMENT_CASES, ids=[f"{i}-{case.op}" for i, case in enumerate(SEGMENT_CASES)])
def test_as_many_rows_as_there_are(case: Case) -> None:
    run = trivium.tensorflow.function(tf.function(case.function), fallback=False)
    inputs = [tf.constant(x) for x in case.inputs]
    for got, wanted in zip(tf.nest.flatten(run(*inputs)), tf.nest.flatten(case.function(*inputs)), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-3 if got.dtype.size < 4 else 1e-4, atol=1e-5)


def test_more_segments_than_rows() -> None:
    """The program has room for as many as there are rows, and is compiled again for more."""
    run = trivium.tensorflow.function(tf.function(tf.math.segment_max), fallback=False)
    for last in (2, 40, 5):
        ids = tf.constant([0, 0, last])
        np.testing.assert_array_equal(run(TABLE[:3], ids), tf.math.segment_max(TABLE[:3], ids))


def test_sparse_lookups_train() -> None:
    run = trivium.tensorflow.function(tf.function(lookup_step), fallback=False)
    places, weights = tf.constant([3, 1, 6, 3]), tf.constant([0.5, 1, 2, 0.1])
    for got, wanted in zip(run(TABLE, places, weights), lookup_step(tf.constant(TABLE), places, weights), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
