"""One op of PyTorch's op database, compiled by Trivium in one graph, against PyTorch without a compiler."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from trivium.ir.errors import Error, UnsupportedOpError

BACKWARD = "backward"
KINDS = ("float32", BACKWARD, "int64", "bool", "bfloat16", "complex64", "float64", "float16")
"""The tables of the suite: forward programs by dtype, and programs with gradients, in float32."""

MORE_KINDS = ("complex128", "int32", "int16", "int8", "uint8")
"""Tables that are made if they are asked for."""

DTYPES = {name: getattr(torch, name) for name in (*KINDS, *MORE_KINDS) if name != BACKWARD}

TOLERANCES = {torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float64: 1e-9, torch.complex128: 1e-9}
"""Relative to the largest element of a result; 32 bits have the default."""
DEFAULT_TOLERANCE = 2e-5
NEARNESS = 8
"""How much farther than eager's a result may be from that in double precision."""

Program = Callable[..., list[Any]]


class Refused(Exception):
    """Trivium says what it does not have."""


class Wrong(Exception):
    """A result differs."""


class Crashed(Exception):
    """An error that is not one of Trivium's refusals."""


@dataclass(frozen=True)
class Case:
    """An op of the database with one of its variants, in one kind of table."""

    op: OpInfo
    kind: str

    @property
    def name(self) -> str:
        return f"{self.op.name}.{self.op.variant_test_name}" if self.op.variant_test_name else self.op.name

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES.get(self.kind, torch.float32)

    @property
    def differentiates(self) -> bool:
        return self.kind == BACKWARD

    def samples(self, count: int) -> list[SampleInput]:
        """Returns a few of the op's sample inputs, the same in every run: the first one and others by chance."""
        torch.manual_seed(0)
        samples = list(self.op.sample_inputs("cpu", self.dtype, requires_grad=self.differentiates))
        others = random.Random(zlib.crc32(self.name.encode())).sample(samples[1:], min(count, len(samples)) - 1)
        return [*samples[:1], *others]


def cases(kind: str) -> list[Case]:
    """Returns the ops that the database says work for a kind of table."""
    dtype = DTYPES.get(kind, torch.float32)
    return [
        Case(op, kind) for op in op_db if op.supports_dtype(dtype, "cpu") and (kind != BACKWARD or op.supports_autograd)
    ]


def check(case: Case, count: int, options: dict[str, Any]) -> None:
    """Compares an op with eager at a few samples. Raises `Refused`, `Wrong` or `Crashed`; skips the test if eager, or
    the capture alone, cannot run any of the samples."""
    samples = case.samples(count)
    outcomes = [_compare(case, sample, options) for sample in samples]
    if not outcomes:
        pytest.skip("no sample inputs")
    if not any(outcome is None for outcome in outcomes):
        pytest.skip(str(outcomes[0]))


def _compare(case: Case, sample: SampleInput, options: dict[str, Any]) -> str | None:
    """Returns why a sample does not count, or nothing if it is equal."""
    program = _program(case, sample)
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def function(given: Sequence[torch.Tensor]) -> Any:
        replaced = iter(given)
        full = [next(replaced) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return program(*pytree.tree_unflatten(full, spec))

    run = _with_gradients(function) if case.differentiates else _forward(function)
    try:
        expected = run(function, _copies(tensors))
    except Exception as error:
        return f"eager raises {_line(error)}"
    compiled = _compiled(function, "trivium", options)
    try:
        found = run(compiled, _copies(tensors))
    except Exception as error:
        if reason := _not_captured(run, function, tensors):
            return reason
        raise _explained(error) from error
    if _equal(found, expected):
        return None
    if _is_random(case, run, function, tensors, expected):
        if [_kind(x) for x in found] == [_kind(x) for x in expected]:
            return None
        raise Wrong(f"random results have {[_kind(x) for x in found]}, expected {[_kind(x) for x in expected]}")
    if _near(found, expected, function, run, tensors) or _as_referenced(case, sample, found, expected):
        return None
    if reason := _captured_otherwise(run, function, tensors, expected):
        return reason
    raise Wrong(_difference(found, expected))


def _program(case: Case, sample: SampleInput) -> Callable[..., Any]:
    """The op with what makes its results unique, where they are not (signs of eigenvectors)."""
    op, after = case.op.get_op(), sample.output_process_fn_grad
    has_ties = case.op.name in TIES and not case.differentiates and not sample.kwargs.get("stable")

    def program(given: Any, args: Any, kwargs: Any) -> Any:
        result = after(op(given, *args, **kwargs))
        return _named(given, result, _dimension(case.op.name, args, kwargs)) if has_ties else result

    return program


TIES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1}
"""Ops whose indices PyTorch leaves open among equal elements, and where their argument `dim` is."""


def _dimension(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    return kwargs.get("dim", args[TIES[name]] if len(args) > TIES[name] else -1)


def _named(given: torch.Tensor, result: Any, dim: int) -> list[torch.Tensor]:
    """Replaces indices by the elements that they name, and whether none comes twice."""
    *values, indices = result if isinstance(result, tuple) else (result,)
    indices = indices if indices.dim() == given.dim() else indices.unsqueeze(dim)
    once = indices.sort(dim).values.diff(dim=dim) != 0 if indices.dim() else indices == 0
    return [*values, given.gather(dim, indices), once]


def _compiled(function: Callable[..., Any], backend: str, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True, dynamic=False, options=options or None)


def _forward(_: object) -> Callable[..., list[Any]]:
    def run(function: Callable[..., Any], tensors: list[torch.Tensor]) -> list[Any]:
        torch.manual_seed(1)
        with torch.no_grad():
            return pytree.tree_leaves(function(tensors))

    return run


def _with_gradients(_: object) -> Callable[..., list[Any]]:
    def run(function: Callable[..., Any], tensors: list[torch.Tensor]) -> list[Any]:
        torch.manual_seed(1)
        results = pytree.tree_leaves(function(tensors))
        roots = [x for x in results if isinstance(x, torch.Tensor) and x.requires_grad]
        wanted = [x for x in tensors if x.requires_grad]
        if not roots or not wanted:
            raise ValueError("nothing to differentiate")
        generator = torch.Generator().manual_seed(2)
        seeds = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in roots]
        gradients = torch.autograd.grad(roots, wanted, seeds, allow_unused=True)
        return [*(x.detach() if isinstance(x, torch.Tensor) else x for x in results), *gradients]

    return run


def _copies(tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    """Returns tensors of the same layout that the run may change."""
    return [_copy(x, dtype) for x in tensors]


def _copy(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    copied = x.detach().clone() if x.layout is torch.strided else x.detach()
    if dtype is not None and copied.is_floating_point():
        copied = copied.to(dtype)
    return copied.requires_grad_(x.requires_grad)


def _explained(error: BaseException) -> Exception:
    """Returns what the error of a compilation says, in one line."""
    cause = next((each for each in _chain(error) if isinstance(each, Error)), None)
    if isinstance(cause, UnsupportedOpError):
        found = [f"{op.name}{': ' + op.reason if op.reason else ''}" for op in cause.ops]
        return Refused("; ".join(found) or cause.message)
    if cause is not None:
        return Crashed(f"{type(cause).__name__}: {_line(cause)}")
    *_, first = _chain(error)
    return Crashed(f"{type(first).__name__}: {_line(first)}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200]


def _not_captured(run: Program, function: Any, tensors: Any) -> str:
    """Returns why PyTorch itself cannot capture a program in one graph, or nothing."""
    try:
        run(_compiled(function, "aot_eager"), _copies(tensors))
    except Exception as error:
        return f"aot_eager raises {type(error).__name__}: {_line(error)}"
    return ""


def _captured_otherwise(run: Program, function: Any, tensors: Any, expected: list[Any]) -> str:
    """Returns something if PyTorch's own capture differs from eager as well."""
    try:
        captured = run(_compiled(function, "aot_eager"), _copies(tensors))
    except Exception as error:
        return f"aot_eager raises {type(error).__name__}: {_line(error)}"
    return "" if _equal(captured, expected) else "aot_eager differs from eager too"


def _is_random(case: Case, run: Program, function: Any, tensors: Any, expected: list[Any]) -> bool:
    """Whether results follow from the generator, or are memory that nothing was written to."""
    if case.op.name in UNWRITTEN:
        return True

    def reseeded(given: Any) -> Any:
        torch.manual_seed(3)
        torch.empty(1000).fill_(7.0)
        return function(given)

    return not _equal(run(reseeded, _copies(tensors)), expected)


UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Ops whose results have no specified contents."""


def _kind(x: Any) -> Any:
    return (tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else type(x)


def _equal(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(map(_same, found, expected))


def _same(x: Any, y: Any) -> bool:
    if not isinstance(y, torch.Tensor) or not isinstance(x, torch.Tensor):
        return type(x) is type(y) and (x == y or x != x)
    if _kind(x) != _kind(y):
        return False
    if not (y.is_floating_point() or y.is_complex()):
        return torch.equal(x.detach(), y.detach())
    return _distance(x, y) <= TOLERANCES.get(y.dtype, DEFAULT_TOLERANCE)


def _distance(x: torch.Tensor, y: torch.Tensor) -> float:
    """Returns the largest difference relative to the largest finite element; infinite if one side alone has NaN or
    infinity at a place."""
    x, y = _numbers(x), _numbers(y)
    finite = torch.isfinite(y)
    if not torch.equal(finite, torch.isfinite(x)):
        return float("inf")
    if not torch.equal(torch.nan_to_num(x[~finite]), torch.nan_to_num(y[~finite])):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(y[finite].abs().max()), 1.0)
    return float((x[finite] - y[finite]).abs().max()) / scale


def _numbers(x: torch.Tensor) -> torch.Tensor:
    """Returns real numbers in double precision."""
    x = x.detach() if x.layout is torch.strided else x.detach().to_dense()
    if x.is_complex():
        return torch.view_as_real(x.to(torch.complex128).resolve_conj())
    return x.to(torch.float64)


def _near(found: list[Any], expected: list[Any], function: Any, run: Program, tensors: Any) -> bool:
    """Whether the results are about as far from those in double precision as eager's are."""
    if len(found) != len(expected) or [_kind(x) for x in found] != [_kind(x) for x in expected]:
        return False
    try:
        exact = run(function, _copies(tensors, torch.float64))
    except Exception:
        return False
    pairs = zip(found, expected, exact, strict=False)
    return all(_same(x, y) or _distance(x, z) <= NEARNESS * _distance(y, z) for x, y, z in pairs)


def _as_referenced(case: Case, sample: SampleInput, found: list[Any], expected: list[Any]) -> bool:
    """Whether the result is no farther than eager's from that of the op's reference: PyTorch's own functions of double
    precision are not all exact."""
    reference = getattr(case.op, "ref", None)
    if reference is None or case.differentiates or not found or _kind(found[0]) != _kind(expected[0]):
        return False
    try:
        arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in (sample.input, *sample.args)]
        exact = torch.as_tensor(reference(*arrays, **sample.kwargs))
    except Exception:
        return False
    # Where both sides are not finite, they have to agree.
    return len(found) == 1 and _distance(found[0], exact) <= max(_distance(expected[0], exact), 1e-12)


def _difference(found: list[Any], expected: list[Any]) -> str:
    for index, (x, y) in enumerate(zip(found, expected, strict=False)):
        if _same(x, y):
            continue
        if _kind(x) != _kind(y):
            return f"result {index} has {_kind(x)}, expected {_kind(y)}"
        if isinstance(y, torch.Tensor):
            different = (x.detach() != y.detach()).reshape(-1)
            at = int(different.to(torch.int8).argmax())
            pair = x.detach().reshape(-1)[at], y.detach().reshape(-1)[at]
            return f"result {index} of shape {tuple(y.shape)} has {pair[0].item()} at {at}, expected {pair[1].item()}"
        return f"result {index} has {x!r}, expected {y!r}"
    return f"{len(found)} results, expected {len(expected)}"
