"""The attention ops of CUDA tensors, which PyTorch traces but cannot run without a GPU, against its op for the CPU and
its math."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from trivium.importers.pytorch import ResultIndex, import_graph
from trivium.importers.pytorch.types import to_array
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.torch

ATEN = torch.ops.aten
EFFICIENT, FLASH, CUDNN = "efficient", "flash", "cudnn"
OPS = {name: getattr(ATEN, f"_scaled_dot_product_{name}_attention") for name in (EFFICIENT, FLASH, CUDNN)}
GRADIENTS = {name: getattr(ATEN, f"_scaled_dot_product_{name}_attention_backward") for name in OPS}


def evaluated(function: Callable[..., list[Tensor]], *tensors: Tensor, **more: np.ndarray) -> list[np.ndarray]:
    """Returns what the program of a function of tensors computes; the state of the random generator is given last."""
    graph = make_fx(function, tracing_mode="fake")(*tensors)
    imported = import_graph(graph, tensors)
    imported.module.verify()
    found = evaluate(imported.module, *map(to_array, tensors), *more.values())
    assert all(isinstance(output, ResultIndex) for output in imported.outputs)
    return [found[output.index] for output in imported.outputs]


def forward(
    name: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, scale: float | None
):
    """Returns what the op returns."""
    if name == FLASH:
        assert mask is None
        return OPS[name](q, k, v, p, causal, scale=scale)
    return OPS[name](q, k, v, mask, True, p, causal, scale=scale)


def both(name: str, causal: bool, scale: float | None, p: float = 0.0) -> Callable[..., list[Tensor]]:
    """Returns a function that returns the result of attention, and the gradients of its factors and of its mask."""

    def function(*given: Tensor) -> list[Tensor]:
        grad, q, k, v, mask = given if len(given) == 5 else (*given, None)
        out, sums, *rest = forward(name, q, k, v, mask, p, causal, scale)
        factors, lengths = (grad, q, k, v), (q.shape[2], k.shape[2])
        if name == EFFICIENT:
            wanted = [True, True, True, mask is not None]
            found = GRADIENTS[name](*factors, mask, out, sums, *rest, p, wanted, causal, scale=scale)
        elif name == FLASH:
            state, unused = rest[4:6]
            found = GRADIENTS[name](*factors, out, sums, None, None, *lengths, p, causal, state, unused, scale=scale)
        else:
            seeds = rest[4:6]
            found = GRADIENTS[name](*factors, out, sums, *seeds, mask, None, None, *lengths, p, causal, scale=scale)
        return [out, *(x for x in found if x is not None)]

    return function


def tensors(heads: int = 4, length: int = 6, kind: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 4, 5, 8), (2, 4, 5, 8), (2, heads, length, 8), (2, heads, length, 8)]
    return [torch.randn(shape, generator=generator).to(kind) for shape in shapes]


def expected(
    causal: bool, scale: float | None, grad: Tensor, *factors: Tensor, mask: Tensor | None = None
) -> list[Tensor]:
    """Returns the same by PyTorch's own attention on the CPU, in f64."""
    wide = [x.double().requires_grad_() for x in factors]
    added = None if mask is None else mask.double().requires_grad_()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(
            *wide, added, is_causal=causal, scale=scale, enable_gqa=wide[0].shape[1] != wide[1].shape[1]
        )
    out.backward(grad.double())
    return [out, *(x.grad for x in wide), *([added.grad] if added is not None else [])]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(("causal", "scale"), [(False, None), (True, 0.3)])
def test_attention_and_its_gradients(name: str, causal: bool, scale: float | None) -> None:
    given = tensors(length=5 if causal else 6)
    found = evaluated(both(name, causal, scale), *given)
    for ours, theirs in zip(found, expected(causal, scale, *given), strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-5)


def test_heads_that_share_keys() -> None:
    given = tensors(heads=2)
    found = evaluated(both(FLASH, False, None), *given)
    for ours, theirs in zip(found, expected(False, None, *given), strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [EFFICIENT, CUDNN])
def test_masks_and_their_gradients(name: str) -> None:
    given = tensors()
    mask = torch.randn(2, 4, 5, 6)
    mask[..., 3:] = -torch.inf
    found = evaluated(both(name, False, None), *given, mask)
    for ours, theirs in zip(found, expected(False, None, *given, mask=mask), strict=name == EFFICIENT):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OPS)
def test_results_are_described_as_pytorch_does(name: str) -> None:
    _, q, k, v = tensors(kind=torch.bfloat16)
    found = evaluated(
        lambda *given: [x for x in forward(name, *given, None, 0.0, False, None) if isinstance(x, Tensor)], q, k, v
    )
    described = make_fx(lambda *given: forward(name, *given, None, 0.0, False, None), tracing_mode="fake")(q, k, v)
    metas = [
        x for node in described.graph.nodes if node.target in OPS[name].__dict__.values() for x in node.meta["val"]
    ]
    metas = [x for x in metas if isinstance(x, Tensor)]
    assert [x.shape for x in found] == [tuple(x.shape) for x in metas]


@pytest.mark.parametrize("name", OPS)
def test_the_gradient_drops_out_what_the_op_has_dropped_out(name: str) -> None:
    """With one feature of the values that is 1, a result is the sum of the weights that are left."""
    grad, q, k, _ = tensors()
    v = torch.eye(8)[:6].expand(2, 4, 6, 8).contiguous()
    state = np.array([3, 4], np.uint64)
    out, _, _, of_v = evaluated(both(name, False, None, 0.5), torch.ones_like(grad), q, k, v, state=state)
    weights = torch.softmax(q @ k.transpose(2, 3) * 8**-0.5, 3).numpy()
    left = out[..., :6]
    assert 0.3 < np.mean(left == 0) < 0.7
    np.testing.assert_allclose(left, np.where(left == 0, 0, 2 * weights), rtol=1e-5)
    np.testing.assert_allclose(of_v[..., 0], left.sum(2), rtol=1e-5)
