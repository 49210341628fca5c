"""Matrix products as contraction problems."""

from __future__ import annotations

from trivium.backends.cpu.contraction.problem import Access, Axis, Group, Problem


def matmul(
    batch: int, m: int, n: int, k: int,
    lhs: tuple[int, int, int] | None = None, rhs: tuple[int, int, int] | None = None, out: tuple[int, int, int] | None = None,
) -> Problem:
    """out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]. Strides, in elements, of lhs as (b, m, k), of rhs as (b, k, n), of out as
    (b, m, n); dense row-major where none are given."""  # fmt: skip
    lhs = lhs or (m * k, k, 1)
    rhs = rhs or (k * n, n, 1)
    out = out or (m * n, n, 1)
    b_axis, m_axis, n_axis, k_axis = (Axis(extent) for extent in (batch, m, n, k))
    return Problem(
        batch=Group((b_axis,)), rows=Group((m_axis,)), columns=Group((n_axis,)), reduction=Group((k_axis,)),
        lhs=Access({b_axis: lhs[0], m_axis: lhs[1], k_axis: lhs[2]}),
        rhs=Access({b_axis: rhs[0], k_axis: rhs[1], n_axis: rhs[2]}),
        out=Access({b_axis: out[0], m_axis: out[1], n_axis: out[2]}),
    )  # fmt: skip
