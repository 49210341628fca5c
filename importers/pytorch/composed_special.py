"""Special functions: Bessel's, Airy's, the error function's relatives, as fitted series with what is known of their
singularities and of infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np
import torch
from scipy import special
from torch import Tensor

from trivium.importers.bessel import I0, I1, J0, J1, K0, K1, LIMIT, WAVES, Y0, Y1
from trivium.importers.fitting import Fit
from trivium.importers.pytorch.composition import composed
from trivium.importers.pytorch.fitting import series

Function = Callable[[Tensor], Tensor]


def in_floats(function: Function) -> Function:
    """Computes integers in PyTorch's default type, and floats of 16 bits in 32."""

    @wraps(function)
    def computed(self: Tensor) -> Tensor:
        if not self.is_floating_point():
            return function(self.to(torch.get_default_dtype()))
        if self.dtype in (torch.float16, torch.bfloat16):
            return function(self.float()).to(self.dtype)
        return function(self)

    return computed


def _between(x: Tensor, low: float, high: float) -> Tensor:
    """Returns numbers within an interval, so that no series is evaluated outside of its own."""
    return x.clamp(low, high)


# Modified Bessel functions: up to a limit the function itself, beyond it what its exponential leaves, of 1 / x


def _scaled_i0(size: Tensor) -> Tensor:
    near, far = series(I0[0], _between(size, 0, LIMIT)), series(I0[1], _between(1 / size, 0, 1 / LIMIT)) / size.sqrt()
    return torch.where(size > LIMIT, far, near)


def _scaled_i1(size: Tensor) -> Tensor:
    near = size * series(I1[0], _between(size, 0, LIMIT))
    far = series(I1[1], _between(1 / size, 0, 1 / LIMIT)) / size.sqrt()
    return torch.where(size > LIMIT, far, near)


@composed("aten.special_i0e.default")
@in_floats
def i0e(self: Tensor) -> Tensor:
    return _scaled_i0(self.abs())


@composed("aten.i0.default", "aten.special_modified_bessel_i0.default")
@in_floats
def i0(self: Tensor) -> Tensor:
    return self.abs().exp() * _scaled_i0(self.abs())


@composed("aten.special_i1e.default")
@in_floats
def i1e(self: Tensor) -> Tensor:
    return torch.where(self < 0, -1.0, 1.0).to(self.dtype) * _scaled_i1(self.abs())


@composed("aten.special_i1.default", "aten.special_modified_bessel_i1.default")
@in_floats
def i1(self: Tensor) -> Tensor:
    return torch.where(self < 0, -1.0, 1.0).to(self.dtype) * self.abs().exp() * _scaled_i1(self.abs())


def _second_kind(x: Tensor, near: Tensor, far: Tensor, scaled: bool) -> Tensor:
    """Joins both parts of a function that is infinite at 0 and is not defined below; `far` lacks the exponential."""
    found = torch.where(x > 2, far if scaled else far * (-x).exp(), near * x.exp() if scaled else near)
    return torch.where(x > 0, found, torch.where(x == 0, math.inf, math.nan))


def _k0(x: Tensor, scaled: bool) -> Tensor:
    size = _between(x, 0, 2)
    near = series(K0[0], size * size) - (size / 2).log() * _scaled_i0(size) * size.exp()
    return _second_kind(x, near, series(K0[1], _between(1 / x, 0, 0.5)) / x.sqrt(), scaled)


def _k1(x: Tensor, scaled: bool) -> Tensor:
    size = _between(x, 0, 2)
    near = series(K1[0], size * size) / size + (size / 2).log() * _scaled_i1(size) * size.exp()
    return _second_kind(x, near, series(K1[1], _between(1 / x, 0, 0.5)) / x.sqrt(), scaled)


composed("aten.special_modified_bessel_k0.default")(in_floats(lambda self: _k0(self, scaled=False)))
composed("aten.special_modified_bessel_k1.default")(in_floats(lambda self: _k1(self, scaled=False)))
composed("aten.special_scaled_modified_bessel_k0.default")(in_floats(lambda x: _k0(x, scaled=True)))
composed("aten.special_scaled_modified_bessel_k1.default")(in_floats(lambda x: _k1(x, scaled=True)))


# Bessel functions: beyond a limit a wave


def _waves(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the functions of the first and of the second kind."""
    x, waves = x.clamp(min=LIMIT), WAVES[order]
    share = (LIMIT / x).square()
    even, odd, scale = series(waves.even, share), series(waves.odd, share) / x, (2 / math.pi / x).sqrt()
    sine, cosine = (x - waves.phase).sin(), (x - waves.phase).cos()
    return scale * (even * cosine - odd * sine), scale * (even * sine + odd * cosine)


def _near_j0(x: Tensor) -> Tensor:
    return series(J0, x * x)


def _near_j1(x: Tensor) -> Tensor:
    return x * series(J1, x * x)


@composed("aten.special_bessel_j0.default")
@in_floats
def bessel_j0(self: Tensor) -> Tensor:
    size = self.abs()
    return torch.where(size > LIMIT, _waves(0, size)[0], _near_j0(_between(size, 0, LIMIT)))


@composed("aten.special_bessel_j1.default")
@in_floats
def bessel_j1(self: Tensor) -> Tensor:
    size = self.abs()
    found = torch.where(size > LIMIT, _waves(1, size)[0], _near_j1(_between(size, 0, LIMIT)))
    return torch.where(self < 0, -found, found)


def _with_pole(x: Tensor, far: Tensor, near: Tensor) -> Tensor:
    found = torch.where(x > LIMIT, far, near)
    return torch.where(x > 0, found, torch.where(x == 0, -math.inf, math.nan))


@composed("aten.special_bessel_y0.default")
@in_floats
def bessel_y0(self: Tensor) -> Tensor:
    size = _between(self, 0, LIMIT)
    near = series(Y0, size * size) + 2 / math.pi * (size / 2).log() * _near_j0(size)
    return _with_pole(self, _waves(0, self)[1], near)


@composed("aten.special_bessel_y1.default")
@in_floats
def bessel_y1(self: Tensor) -> Tensor:
    size = _between(self, 0, LIMIT)
    near = series(Y1, size * size) / size + 2 / math.pi * (size / 2).log() * _near_j1(size)
    return _with_pole(self, _waves(1, self)[1], near)


@composed("aten.special_spherical_bessel_j0.default")
@in_floats
def spherical_bessel_j0(self: Tensor) -> Tensor:
    found = torch.where(self == 0, 1.0, self.sin() / self)
    return torch.where(self.abs() == math.inf, 0.0, found)


# Airy's function: a wave below an interval, an exponential above it

LOWEST, HIGHEST = -5.0, 2.0
SLOWEST = 2 / 3 * (-LOWEST) ** 1.5
"""The angle at the interval's lower end."""


def _airy_wave(t: np.ndarray, part: int) -> np.ndarray:
    """Returns an amplitude at the inverse of an angle."""
    size = (1.5 / t) ** (2 / 3)
    ai, _, bi, _ = special.airy(-size)
    sine, cosine, scale = np.sin(1 / t + math.pi / 4), np.cos(1 / t + math.pi / 4), np.sqrt(math.pi) * size**0.25
    return scale * (ai * sine + bi * cosine if part == 0 else ai * cosine - bi * sine)


_AIRY = Fit(lambda x: special.airy(x)[0], LOWEST, HIGHEST)
_AIRY_ABOVE = Fit(lambda t: special.airye((1.5 / t) ** (2 / 3))[0] * (1.5 / t) ** (1 / 6), 1e-4, 1.5 / HIGHEST**1.5)
_AIRY_BELOW = Fit(lambda t: _airy_wave(t, 0), 1e-3, 1 / SLOWEST), Fit(lambda t: _airy_wave(t, 1), 1e-3, 1 / SLOWEST)


@composed("aten.special_airy_ai.default")
@in_floats
def airy_ai(self: Tensor) -> Tensor:
    size = self.abs()
    angle = 2 / 3 * size * size.sqrt()
    root = size.sqrt().sqrt()
    above = series(_AIRY_ABOVE, _between(1 / angle, 0, 1.5 / HIGHEST**1.5)) * (-angle).exp() / root
    share = _between(1 / angle, 0, 1 / SLOWEST)
    turn = angle + math.pi / 4
    below = series(_AIRY_BELOW[0], share) * turn.sin() + series(_AIRY_BELOW[1], share) * turn.cos()
    below = below / (math.sqrt(math.pi) * root)
    found = torch.where(self > HIGHEST, above, series(_AIRY, _between(self, LOWEST, HIGHEST)))
    return torch.where(self < LOWEST, below, found)


# The error function's relatives

_ERFCX = Fit(lambda y: special.erfcx(4 / y - 4) / y, 1e-6, 1)
_NDTRI_CENTRE = Fit(lambda s: special.ndtri(0.5 + np.sqrt(s)) / np.sqrt(s), 1e-12, (0.5 - math.exp(-2)) ** 2)
_SHORTEST = 1 / 38.6
"""The inverse of the root below, for the smallest double."""
_NDTRI_TAIL = Fit(lambda t: 1 / t + special.ndtri_exp(-0.5 / t**2) + t * np.log(t), _SHORTEST, 0.5)


@composed("aten.special_erfcx.default")
@in_floats
def erfcx(self: Tensor) -> Tensor:
    share = 4 / (4 + self.abs())
    found = series(_ERFCX, share) * share
    return torch.where(self < 0, 2 * self.square().exp() - found, found)


@composed("aten.special_ndtri.default")
@in_floats
def ndtri(self: Tensor) -> Tensor:
    tail = torch.minimum(self, 1 - self)
    middle = _between(self, math.exp(-2), 1 - math.exp(-2)) - 0.5
    centre = middle * series(_NDTRI_CENTRE, middle * middle)
    root = (-2 * _between(tail, 0, math.exp(-2)).log()).sqrt()
    away = root - root.log() / root - series(_NDTRI_TAIL, _between(1 / root, _SHORTEST, 0.5))
    found = torch.where(tail < math.exp(-2), torch.where(self < 0.5, -away, away), centre)
    found = torch.where((self < 0) | (self > 1), math.nan, found)
    return torch.where(self == 0, -math.inf, torch.where(self == 1, math.inf, found))


@composed("aten.frexp.Tensor")
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    if self.dtype in (torch.float16, torch.bfloat16):
        mantissa, exponent = frexp(self.float())
        return mantissa.to(self.dtype), exponent
    integer, width = (torch.int64, 52) if self.dtype == torch.float64 else (torch.int32, 23)
    ones = 2047 if width == 52 else 255
    lifted = self.abs() < torch.finfo(self.dtype).tiny
    bits = torch.where(lifted, self * 2.0**width, self).view(integer)
    exponent = ((bits >> width) & ones).to(torch.int32) - (ones // 2 - 1) - torch.where(lifted, width, 0)
    mantissa = ((bits & ~(ones << width)) | ((ones // 2 - 1) << width)).view(self.dtype)
    plain = (self == 0) | ~torch.isfinite(self)
    return torch.where(plain, self, mantissa), torch.where(plain, 0, exponent).to(torch.int32)
