"""Tests of every op, on every record: a program of that op is valid, runs, returns an array of the inferred or stated
type, and agrees with the record's oracle."""

from __future__ import annotations

from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest

from tests.ir.ops.records import Lax, Record, collect
from trivium.ir.declare import OPS
from trivium.ir.errors import VerificationError
from trivium.ir.interpreter import evaluate
from trivium.ir.types import C64, I1, INDEX, TOKEN, FloatType, TensorType, TupleType, is_complex, tensor

RECORDS = collect()
# Ops that only make sense with other ops around them; the tests of programs cover them.
WITHOUT_RECORD = {
    *("stablehlo.return", "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.composite"),
    *("stablehlo.after_all", "stablehlo.create_token", "stablehlo.infeed", "stablehlo.outfeed"),
    *("stablehlo.send", "stablehlo.recv", "stablehlo.async_start", "stablehlo.async_done"),
}


def parametrized(records: list[Record]) -> list:
    return [
        pytest.param(record, id=str(record), marks=[pytest.mark.jax] if isinstance(record.oracle, Lax) else [])
        for record in records
    ]


def error_allowed(kind: TensorType, ulps: int) -> float:
    """Returns the relative error that this number of units in the last place amounts to."""
    element = kind.element_type.element_type if is_complex(kind.element_type) else kind.element_type
    return ulps * float(ml_dtypes.finfo(element.dtype).eps) if isinstance(element, FloatType) else 0.0


def widest(array: np.ndarray) -> np.ndarray:
    """Returns the array with a dtype that NumPy's own comparison takes."""
    return array if array.dtype.kind in "biuc" else array.astype(np.float64)


def assert_agree(result: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Requires the same dtype, and values within the relative error; NaN equals NaN, and zeros keep their sign."""
    assert result.dtype == wanted.dtype
    result, wanted = widest(result), widest(wanted)
    if not tolerance:
        np.testing.assert_array_equal(result, wanted)
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * 1e-3)
    if wanted.dtype == np.float64:
        np.testing.assert_array_equal(np.signbit(result[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("record", parametrized(RECORDS))
def test_record(record: Record) -> None:
    module = record.module()
    module.verify()
    types = module.main.function_type.results
    results = evaluate(module, *record.arrays)
    for result, kind in zip(results, types, strict=True):
        assert (result.dtype, result.shape) == (kind.dtype, kind.static_shape)
    if record.oracle is None:
        return
    expected = record.oracle(*record.arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, wanted, kind in zip(results, expected, types, strict=True):
        assert_agree(result, np.asarray(wanted), error_allowed(kind, record.ulps))


@pytest.mark.parametrize(
    "record", {record.op: record for record in RECORDS}.values(), ids=lambda record: record.op.NAME
)
def test_check_refuses_or_accepts_any_type(record: Record) -> None:
    """Files may contain anything; a check either passes or raises a Trivium error."""
    (op, *_) = record.module().main.body.block
    if op.CHECK is None:
        return
    for value in (*op.operands, *op.results):
        kept = value.type
        for wrong in (TOKEN, TupleType((kept,)), tensor(of=I1), tensor(None, of=INDEX), tensor(2, 3, 4, 5, of=C64)):
            value.type = wrong
            with suppress(VerificationError):
                op.CHECK(op)
        value.type = kept


@pytest.mark.parametrize("name", sorted(name for name in OPS if name.partition(".")[0] in ("stablehlo", "chlo")))
def test_every_op_has_a_record(name: str) -> None:
    assert name in WITHOUT_RECORD or any(name == record.op.NAME for record in RECORDS)
