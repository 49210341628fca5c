"""The gradient of draws from Dirichlet distributions. PyTorch approximates it, differently in four regions, and so do
these functions, in 64 bits."""

from __future__ import annotations

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed


@composed("aten._dirichlet_grad.default")
def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    dtype, (x, alpha, total) = x.dtype, (part.double() for part in (x, alpha, total))
    beta, boundary = total - alpha, total * x * (1 - x)
    found = torch.where((alpha > 6) & (beta > 6), _of_large(x, alpha, beta), _corrected(x, alpha, total))
    near_one = (x >= 0.5) & (boundary < 0.75)
    found = torch.where(near_one, -_near_zero_by_beta(1 - x, beta, alpha), found)
    return torch.where((x <= 0.5) & (boundary < 2.5), _near_zero(x, alpha, beta), found).to(dtype)


def _near_zero(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Returns the first terms of the Taylor series of the derivative with respect to alpha."""
    factor = torch.digamma(alpha) - torch.digamma(alpha + beta) - x.log()
    numerator = torch.ones_like(x)
    series = (factor + 1 / alpha) / alpha
    for i in range(1, 11):
        numerator = numerator * (i - beta) * x / i
        series = series + numerator / (alpha + i) * (factor + 1 / (alpha + i))
    return _without_nan(x * (1 - x).pow(-beta) * series)


def _near_zero_by_beta(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Returns the first terms of the Taylor series of the derivative with respect to beta."""
    factor = torch.digamma(alpha + beta) - torch.digamma(beta)
    numerator, betas, slopes = torch.ones_like(x), torch.ones_like(x), torch.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        numerator = -numerator * x / i
        slopes = slopes * (beta - i) + betas
        betas = betas * (beta - i)
        series = series + numerator / (alpha + i) * (slopes + factor * betas)
    return _without_nan(-(1 - x).pow(1 - beta) * series)


def _without_nan(x: Tensor) -> Tensor:
    return torch.where(x.isnan(), 0.0, x)


def _of_large(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Returns Rice's saddle point expansion, for large alpha and beta; near the mean, where it is singular, a
    polynomial."""
    total = alpha + beta
    mean, deviation = alpha / total, (alpha * beta / (total + 1)).sqrt() / total
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    axbx = alpha * (x - 1) + beta * x
    term1 = 2 * alpha * alpha * (x - 1) + alpha * beta * (x - 1) - x * beta * beta
    term1 = term1 / ((2 * alpha / beta).sqrt() * total.pow(1.5) * axbx * axbx)
    term2 = 0.5 * (alpha / (total * x)).log()
    term3 = (8 * alpha * beta / total).sqrt() / axbx
    term4 = (beta * (beta / (total * (1 - x))).log() + alpha * (alpha / (total * x)).log()).pow(-1.5)
    expansion = term1 + term2 * (term3 + torch.where(x < mean, term4, -term4))
    far = stirling * -x / (2 * alpha * beta / total).sqrt() * expansion
    return torch.where((x - mean).abs() <= 0.1 * deviation, _at_mean(x, alpha, beta), far)


def _stirling(x: Tensor) -> Tensor:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _at_mean(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    total = alpha + beta
    found = (453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * (8 * (1 - x) * (135 * beta - 11))
    found = 3 * (59 + 180 * beta - 90 * x) * beta * beta + alpha * found
    found = (43 + 20 * (16 + 27 * beta) * x) * beta.pow(3) + alpha * found
    found = 47 * x * beta.pow(4) + alpha * found
    scale = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    return scale / (1 - x) * found / (12960 * alpha.pow(3) * beta * beta * (1 + 12 * total))


_NUMERATOR = (
    (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
    (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
    (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
    (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
    (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
    (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
    (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
    (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
    (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
)
_DENOMINATOR = (
    (1, -0.02924021934, -0.04438342661, 0.007285809825),
    (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
    (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
    (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
    (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
    (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
    (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
    (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
    (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
)
"""Coefficients of u^i a^j b^k, one row for each i and j."""


def _corrected(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Returns an analytic approximation times a rational function that was fitted to the rest."""
    u = x.log()
    a = alpha.log() - u
    b = total.log() - a
    powers = [one * other for one in (torch.ones_like(u), u, u * u) for other in (torch.ones_like(a), a, a * a)]
    above, below = (
        sum(power * (c0 + b * (c1 + b * (c2 + b * c3))) for power, (c0, c1, c2, c3) in zip(powers, rows, strict=True))
        for rows in (_NUMERATOR, _DENOMINATOR)
    )
    return above / below * x * (torch.digamma(total) - torch.digamma(alpha)) / (total - alpha)
