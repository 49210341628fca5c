"""Special functions, against values computed with forty digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from trivium.ir.ops import special

VALUES = [
    (special.erf_inv, (1 - 2**-53,), 5.8635847487551679272),
    (special.erf_inv, (1 - 1e-12,), 5.0420318985726961301),
    (special.erf_inv, (0.9,), 1.1630871536766741628),
    (special.erf_inv, (0.5,), 0.47693627620446987338),
    (special.erf_inv, (1e-20,), 8.8622692545275796504e-21),
    (special.erf_inv, (-0.75,), -0.81341984759761854169),
    (special.digamma, (1e-5,), -100000.57719921567289),
    (special.digamma, (0.5,), -1.9635100260214234794),
    (special.digamma, (1.4616321449683622,), -9.2412655217294275168e-17),
    (special.digamma, (1.5,), 0.036489973978576520559),
    (special.digamma, (2.0,), 0.42278433509846713939),
    (special.digamma, (9.75,), 2.225109535044576012),
    (special.digamma, (1e6,), 13.815510057964190771),
    (special.digamma, (-7.3,), 4.3373073055100501422),
    (special.lgamma, (1e-5,), 11.512919692895825626),
    (special.lgamma, (1.0000001,), -5.772155829918507097e-8),
    (special.lgamma, (2.0,), 0.0),
    (special.lgamma, (2.2,), 0.096947466790638873178),
    (special.lgamma, (2.5,), 0.28468287047291915963),
    (special.lgamma, (-7.3,), -7.7791016298268516713),
    (special.zeta, (1.0001, 1.0), 10000.57722294753897),
    (special.zeta, (2.0, 0.25), 17.197329154507110739),
    (special.zeta, (20.0, 3.0), 2.8771746654611315204e-10),
    (special.zeta, (3.0, 1000.0), 5.0050024999991666675e-7),
    (special.zeta, (2.0, -1.5), 9.3792466449891237539),
    (special.zeta, (2.0, -10.75), 19.650378280099093365),
    (special.zeta, (3.0, -1000000.75), 62.012553360600140350),
    (special.digamma, (-1e-20,), 1e20),
    (special.polygamma, (1.0, 0.25), 17.197329154507110739),
    (special.polygamma, (2.0, 3.0), -0.1541138063191885708),
    (special.polygamma, (10.0, 1.5), -42108.858768975491797),
    (special.polygamma, (3.0, -2.5), 194.74787621918762242),
    (special.bessel_i1e, (1e-5,), 4.9999500003124989507e-6),
    (special.bessel_i1e, (1.0,), 0.20791041534970844887),
    (special.bessel_i1e, (-7.64,), -0.1369163826397327172),
    (special.bessel_i1e, (29.99,), 0.071928009391084442495),
    (special.bessel_i1e, (30.01,), 0.071904657486823566341),
    (special.bessel_i1e, (1e4,), 0.0039892731959836622645),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), VALUES)
def test_value(function: Callable[..., np.ndarray], arguments: tuple[float, ...], expected: float) -> None:
    assert float(function(*arguments)) == pytest.approx(expected, rel=3e-15, abs=1e-300)


LIMITS = [
    (special.erf_inv, (1.0,), math.inf),
    (special.erf_inv, (-1.0,), -math.inf),
    (special.erf_inv, (1.5,), math.nan),
    (special.lgamma, (0.0,), math.inf),
    (special.lgamma, (-3.0,), math.inf),
    (special.lgamma, (-math.inf,), math.inf),
    (special.lgamma, (1e306,), math.inf),
    (special.digamma, (0.0,), math.nan),
    (special.digamma, (-2.0,), math.nan),
    (special.digamma, (math.inf,), math.inf),
    (special.digamma, (-math.inf,), math.nan),
    (special.zeta, (1.0, 3.0), math.inf),
    (special.zeta, (0.5, 3.0), math.nan),
    (special.zeta, (2.0, -3.0), math.inf),
    (special.zeta, (3.0, -3.0), math.nan),
    (special.zeta, (2.5, -0.5), math.nan),
    (special.zeta, (400.0, 0.1), math.inf),
    (special.polygamma, (1.5, 2.0), math.nan),
    (special.polygamma, (1.0, 0.0), math.inf),
    (special.bessel_i1e, (math.inf,), 0.0),
    (special.bessel_i1e, (0.0,), 0.0),
    *((function, (math.nan,), math.nan) for function in (special.erf_inv, special.lgamma, special.digamma)),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), LIMITS)
def test_limit(function: Callable[..., np.ndarray], arguments: tuple[float, ...], expected: float) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_equal(float(function(*arguments)), expected)


@pytest.mark.parametrize("function", [special.erf, special.lgamma, special.digamma])
def test_any_shape(function: Callable[..., np.ndarray]) -> None:
    for shape in ((), (0,), (2, 0, 3), (2, 3)):
        assert function(np.full(shape, 0.5)).shape == shape
