"""CHLO's functions: compared with JAX's and NumPy's in float64, which may themselves be wrong by a unit in the last
place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record, rounded
from tests.ir.ops.records.reduction import LaxCall
from trivium.ir.declare import Op
from trivium.ir.ops import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BesselI1e,
    ChloTan,
    Conj,
    Cosh,
    Digamma,
    Erf,
    Erfc,
    ErfInv,
    IsInf,
    IsNegInf,
    IsPosInf,
    Lgamma,
    NextAfter,
    Polygamma,
    Sinh,
    Square,
    TopK,
    Zeta,
)

_DTYPES = (np.float64, np.float32, np.float16, np.dtype(ml_dtypes.bfloat16))
_LINE = np.linspace(-6, 6, 97)
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
_UNIT = np.linspace(-1, 1, 41)
_PLANE = np.add.outer(np.linspace(-2, 2, 7), 1j * np.linspace(-1.5, 1.5, 6))


def _unary(op: type[Op], values: np.ndarray, function: Callable[..., Any], ulps: int = 0) -> list[Record]:
    """Returns records of the op on the values in all float dtypes, compared with `function` in float64."""
    return [
        Record(op, (values.astype(dtype),), oracle=rounded(function), ulps=ulps * (1 if dtype == np.float64 else 0))
        for dtype in _DTYPES
    ]


def _complex(op: type[Op], function: Callable[..., Any]) -> list[Record]:
    return [Record(op, (_PLANE.astype(dtype),), oracle=rounded(function)) for dtype in (np.complex64, np.complex128)]


def _lax(op: type[Op], name: str, *values: np.ndarray, ulps: int) -> Record:
    """Returns a record of the op in float64, compared with `jax.lax`, which is more accurate if XLA optimizes it."""

    def oracle(lax: Any, *arrays: np.ndarray) -> Any:
        import jax

        return jax.jit(getattr(lax, name), compiler_options={"xla_backend_optimization_level": 3})(*arrays)

    return Record(op, values, oracle=LaxCall(oracle), ulps=ulps)


_FUNCTIONS = [
    *_unary(Erf, np.append(_LINE, _SPECIAL), np.vectorize(math.erf)),
    *_unary(Erfc, np.append(_LINE, _SPECIAL), np.vectorize(math.erfc)),
    _lax(Erf, "erf", _LINE, ulps=4),
    _lax(Erfc, "erfc", _LINE, ulps=20),
    _lax(ErfInv, "erf_inv", np.concatenate([_UNIT, 1 - np.logspace(-3, -1, 15), np.logspace(-30, -1, 30)]), ulps=40),
    _lax(Lgamma, "lgamma", np.concatenate([_LINE + 0.01, [0.5, 1e-300, 1e10, 170.5], _SPECIAL[2:]]), ulps=1000),
    _lax(Digamma, "digamma", np.concatenate([_LINE + 0.01, [0.5, 1e-300, 1e10, 0, -3], _SPECIAL]), ulps=200),
    _lax(BesselI1e, "bessel_i1e", np.concatenate([_LINE * 10, _SPECIAL[[0, 1, 2, 4]]]), ulps=20),
    _lax(
        Polygamma,
        "polygamma",
        np.array([0, 1, 2, 3, 1, 2.5, -1, 1, 40, 2]),
        np.array([1.5, 2.5, -0.5, -2.5, -2, 3, 2, 0, 3, 1e-3]),
        ulps=200,
    ),
    _lax(
        Zeta,
        "zeta",
        np.array([2, 3, 2, 2, 4, 1, 0.5, 2, 3, 200, 1.5]),
        np.array([1, 0.5, -2, -0.5, -1.5, 2, 2, 0, -2, 0.1, 1e6]),
        ulps=20,
    ),
    # The inverse is known: erf_inv(erf(x)) is x.
    Record(
        ErfInv,
        (np.vectorize(math.erf)(np.linspace(-2, 2, 33)),),
        oracle=lambda _: np.linspace(-2, 2, 33),
        ulps=60,
    ),
    *(Record(op, (np.array([0.25, 0.5, 1.5], dtype),)) for op in (Lgamma, Digamma, BesselI1e) for dtype in _DTYPES[1:]),
]

_TRIGONOMETRY = [
    *_unary(Acos, _UNIT, np.arccos),
    *_unary(Asin, _UNIT, np.arcsin),
    *_unary(Atan, np.append(_LINE, _SPECIAL), np.arctan),
    *_unary(Acosh, 1 + np.abs(_LINE), np.arccosh),
    *_unary(Asinh, np.append(_LINE, _SPECIAL), np.arcsinh),
    *_unary(Atanh, _UNIT, np.arctanh),
    *_unary(Cosh, np.append(_LINE, _SPECIAL), np.cosh),
    *_unary(Sinh, np.append(_LINE, _SPECIAL), np.sinh),
    *_unary(ChloTan, _LINE, np.tan),
    *_complex(Acos, np.arccos),
    *_complex(Asin, np.arcsin),
    *_complex(Atan, np.arctan),
    *_complex(Acosh, np.arccosh),
    *_complex(Asinh, np.arcsinh),
    *_complex(Atanh, np.arctanh),
    *_complex(Cosh, np.cosh),
    *_complex(Sinh, np.sinh),
    *_complex(ChloTan, np.tan),
]

_ARITHMETIC = [
    *_unary(Square, np.append(_LINE, _SPECIAL), np.square),
    *_unary(Conj, _LINE, np.conj),
    Record(Square, (_PLANE,), oracle=np.square, ulps=2),
    *(
        Record(Square, (np.array([-np.inf - limit * 1j, limit + limit * 1j, limit / 2 - limit * 1j]),), oracle=squared)
        for limit in (np.finfo(np.float64).max,)
        for squared in (lambda x: np.array([complex(np.inf, np.inf), complex(0, np.inf), complex(-np.inf, -np.inf)]),)
    ),
    *_complex(Conj, np.conj),
    *(
        Record(
            op, (np.append(_LINE, _SPECIAL).astype(dtype),), oracle=lambda array, test=test: test(array.astype(float))
        )
        for op, test in ((IsInf, np.isinf), (IsPosInf, np.isposinf), (IsNegInf, np.isneginf))
        for dtype in _DTYPES
    ),
    Record(
        NextAfter,
        (np.array([1, 1, 0, -1, 2], np.float32), np.array([2, 0, 1, np.inf, 2], np.float32)),
        oracle=np.nextafter,
    ),
    Record(
        NextAfter,
        (np.array([1, 1, 0], ml_dtypes.bfloat16), np.array([2, 0, 1], ml_dtypes.bfloat16)),
        oracle=lambda x, y: np.array([1 + 2.0**-7, 1 - 2.0**-8, 2.0**-133]).astype(x.dtype),
    ),
]


def _top_k(array: np.ndarray, k: int) -> Record:
    return Record(TopK, (array,), {"k": k}, oracle=LaxCall(lambda lax, operand: lax.top_k(operand, k)))


_RNG = np.random.default_rng(3)
_SELECTION = [
    _top_k(_RNG.integers(0, 9, (3, 20)).astype(np.float32), 5),
    _top_k(np.array([1, np.nan, -np.inf, 3, 3, np.inf, np.nan], np.float64), 7),
    _top_k(_RNG.integers(-9, 9, 20).astype(np.int32), 20),
    _top_k(_RNG.integers(0, 255, (2, 2, 8)).astype(np.uint8), 1),
    _top_k(_RNG.integers(0, 9, (2, 8)).astype(ml_dtypes.bfloat16), 3),
]

RECORDS = [*_FUNCTIONS, *_TRIGONOMETRY, *_ARITHMETIC, *_SELECTION]
