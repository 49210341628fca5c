"""What training loops have besides the model: optimizers, clipped gradients, mixed precision; against PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn

pytestmark = pytest.mark.torch
close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable) -> Callable:
    return torch.compile(function, backend="trivium", fullgraph=True, options={"fallback": False})


def test_steps_with_clipped_gradients() -> None:
    """The update as a compiled function: it works on lists of tensors."""

    def train(model: nn.Module, wrap: Callable[[Callable], Callable]) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=True)

        def update() -> Tensor:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return norm

        step = wrap(update)
        for x in torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(1)):
            model(x).square().mean().backward()
            assert step() > 0
            optimizer.zero_grad()

    ours = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 4))
    theirs = copy.deepcopy(ours)
    train(ours, lambda update: torch.compile(update, backend="trivium", options={"fallback": False}))
    train(theirs, lambda update: update)
    close(list(ours.parameters()), list(theirs.parameters()))


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.RMSprop, torch.optim.SGD])
def test_steps_of_scalars_in_double_precision(kind: type[torch.optim.Optimizer]) -> None:
    """PyTorch takes them for numbers. Learning rates that change are numbers among them."""

    def train(wrap: Callable[[Callable], Callable]) -> Tensor:
        scale = nn.Parameter(torch.tensor(1.25, dtype=torch.float64))
        optimizer = kind([scale], lr=0.1, foreach=False)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        step = wrap(optimizer.step)
        for number in range(4):
            scale.grad = (scale.detach() + number).cos()
            step()
            schedule.step()
        return scale.detach()

    options = {"fallback": False}
    found = train(lambda step: torch.compile(step, backend="trivium", options=options))
    # In a graph, the counted steps are in single precision.
    close(found, train(lambda step: torch.compile(step, backend="eager")))
    close(found, train(lambda step: step), atol=0, rtol=1e-6)


def test_scalars_in_double_precision_that_a_program_changes() -> None:
    def update(total: Tensor, count: Tensor, x: Tensor, rate: float) -> Tensor:
        total.mul_(rate).add_(x * x)
        count.add_(1)
        return total / count + x.item()

    ours, theirs = ([torch.tensor(float(i), dtype=torch.float64) for i in range(3)] for _ in range(2))
    run = torch.compile(update, backend="trivium")
    for rate in (0.5, 0.25, 0.125):
        close(run(*ours, rate), update(*theirs, rate))
        close(ours, theirs)


def test_gradients_that_are_passed_on() -> None:
    """A gradient that is that of the result, or half of it, is not shared with another one."""
    x, y, z = (torch.randn(3, requires_grad=True) for _ in range(3))
    given = torch.randn(6)
    compiled(lambda x, y, z: torch.cat([x + y, z]))(x, y, z).backward(given)
    for gradient, expected in ((x.grad, given[:3]), (y.grad, given[:3]), (z.grad, given[3:])):
        close(gradient, expected)
    expected = given.clone()
    x.grad.zero_()
    close((y.grad, z.grad, given), (expected[:3], expected[3:], expected))


def test_ops_on_lists_of_tensors() -> None:
    def program(xs: list[Tensor], ys: list[Tensor]) -> list[list[Tensor]]:
        return [
            torch._foreach_add(xs, ys, alpha=2),
            torch._foreach_mul(xs, ys[0][0, 0]),
            torch._foreach_maximum(xs, 0.1),
            torch._foreach_minimum(xs, [0.1, 0.2]),
            torch._foreach_addcdiv(xs, ys, ys, 0.5),
            torch._foreach_addcmul(xs, ys, ys, [2.0, 3.0]),
            torch._foreach_addcdiv(xs, ys, xs, [1.0, 2.0]),
            torch._foreach_lerp(xs, ys, 0.3),
            torch._foreach_norm(xs, 1),
            torch._foreach_norm(xs, torch.inf, torch.float64),
            torch._foreach_pow(2.0, xs),
            torch._foreach_rsqrt(torch._foreach_abs(xs)),
        ]

    def update(xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
        torch._foreach_copy_(xs, [y[:1] for y in ys])
        torch._foreach_zero_(ys[:1])
        torch._foreach_sub_(ys[1:], 1.0)
        return [*xs, *ys]

    xs, ys = ([torch.randn(2, 3), torch.randn(4, 2)] for _ in range(2))
    close(compiled(program)(xs, ys), program(xs, ys))
    mine, theirs = ([x.clone() for x in xs], [y.clone() for y in ys]), (xs, ys)
    close(compiled(update)(*mine), update(*theirs))
    close(mine, theirs)


@pytest.mark.parametrize("training", [True, False])
def test_mixed_precision_with_batch_normalization(training: bool) -> None:
    """The gradients of float parameters that a bfloat16 program uses."""
    ours = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    theirs = copy.deepcopy(ours.train(training))
    x, y = torch.randn(4, 3, 8, 8), torch.tensor([0, 3, 1, 4])

    def step(model: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = model(x)
            nn.functional.cross_entropy(found, y).backward()
        return found.detach()

    close(step(compiled(ours)), step(theirs), atol=3e-2, rtol=3e-2)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine.grad, other.grad, atol=3e-2, rtol=3e-2)
    close(ours.state_dict(), theirs.state_dict(), atol=1e-2, rtol=1e-2)


def test_derivatives_forwards() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.tanh(x.outer(x).sum(0)).square()

    x = torch.randn(4)
    for function in (torch.func.jacfwd(f), torch.func.hessian(lambda x: f(x).sum())):
        close(compiled(function)(x), function(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("function", [torch.tanh, torch.sigmoid, lambda z: torch.exp(1j * z.real) * z])
def test_gradients_of_complex_functions(function: Callable[[Tensor], Tensor]) -> None:
    """They contain the conjugates of derivatives and of constants."""
    z = torch.randn(5, dtype=torch.complex64, requires_grad=True)
    expected = torch.autograd.grad((function(z) * (2 + 3j)).real.sum(), z)
    close(torch.autograd.grad((compiled(function)(z) * (2 + 3j)).real.sum(), z), expected)


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("parameters", ["float", "narrow"])
def test_gradients_of_narrow_batch_normalization(narrow: torch.dtype, parameters: str) -> None:
    """The gradients of a channel add up to zero but for their own rounding, because statistics and sums are in f32."""
    norm = nn.BatchNorm2d(8).to(narrow if parameters == "narrow" else torch.float32)
    x = torch.randn(4, 8, 16, 16).to(narrow).requires_grad_()
    outer = (torch.randn(4, 8, 16, 16) + 0.5).to(narrow)
    compiled(norm)(x).backward(outer)
    exact = copy.deepcopy(norm).double()
    wide = x.detach().double().requires_grad_()
    exact(wide).backward(outer.double())
    rounding = torch.finfo(narrow).eps / 2 * wide.grad.abs()
    assert x.grad is not None
    assert ((x.grad - wide.grad).abs() <= 2 * rounding + 1e-5).all()
