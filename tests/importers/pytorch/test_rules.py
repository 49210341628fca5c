"""Every PyTorch rule against PyTorch: an op's arguments, the program of a graph with that op alone, its
interpretation."""

import importlib
from operator import attrgetter, getitem

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import fx
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tests.importers.pytorch.cases import Case
from trivium.importers.pytorch import import_graph, rule
from trivium.importers.pytorch.types import to_array
from trivium.ir.interpreter import evaluate

# Dynamo uses prims.fma in place of addcdiv; it is registered here.
importlib.import_module("torch._inductor.inductor_prims")

pytestmark = pytest.mark.torch

FAMILIES = (
    "activation attention comparison convolution elementwise indexing linalg matmul normalization pooling "
    "quantization reduction rnn segments shape special"
)
CASES = [
    case
    for family in FAMILIES.split()
    for case in importlib.import_module(f"tests.importers.pytorch.cases.{family}").CASES
]

RULES_OF_ATEN = {rule.find(name) for name in rule if name.startswith("aten.")}

# Rules that return no tensor, or one with unspecified contents: other tests cover them.
ELSEWHERE = {name for name in rule if "empty" in name or "sym_" in name or "assert" in name}
ELSEWHERE |= {name for name in rule if rule.find(name).__module__.endswith((".counts", ".random"))}
ELSEWHERE |= {name for name in rule if rule.find(name).__module__.endswith((".ctc", ".selection", ".unique"))}
ELSEWHERE |= {name for name in rule if name.startswith("higher_order.")} | {"aten._efficientzerotensor.default"}
ELSEWHERE |= {"aten._new_zeros_with_same_feature_meta.default"}
ELSEWHERE |= {name for name in rule if name.startswith("prims.") and rule.find(name) in RULES_OF_ATEN}
ELSEWHERE |= {name for name in rule if "_token" in name or "check_errors" in name}
ELSEWHERE |= {"aten._conj.default", "aten._conj_physical.default"}
ELSEWHERE |= {name for name in rule if name.startswith("transformers.")}
ELSEWHERE |= {"aten.mkldnn_rnn_layer.default", "aten.mkldnn_rnn_layer_backward.default"}
ELSEWHERE |= {name for name in rule if rule.find(name).__module__.endswith((".cuda_attention", ".cuda_cells"))}

NORMALIZED = torch.ops.aten._native_batch_norm_legit_no_training


def operator(name: str):
    return attrgetter(name)(torch.ops)


def graph_of(case: Case) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """Returns the graph of one op, and the tensors that it takes."""
    graph = fx.Graph()
    leaves, spec = pytree.tree_flatten((case.args, case.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    names = (f"x{index}" for index in range(len(leaves)))
    nodes = [graph.placeholder(next(names)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(nodes, spec)
    call = graph.call_function(operator(case.op), args, kwargs)
    expected = operator(case.op)(*case.args, **case.kwargs)
    if isinstance(expected, torch.Tensor):
        graph.output([call])
    else:
        graph.output([graph.call_function(getitem, (call, index)) for index in range(len(expected))])
    return fx.GraphModule(torch.nn.Module(), graph), tensors


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case: Case) -> None:
    module, tensors = graph_of(case)
    imported = import_graph(module, tensors)
    imported.module.verify()
    found = evaluate(imported.module, *(to_array(x) for x in tensors))
    expected = operator(case.op)(*case.args, **case.kwargs)
    expected = [expected] if isinstance(expected, torch.Tensor) else [x for x in expected if x is not None]
    assert len(found) == len(expected) + len(imported.checks)
    for ours, theirs in zip(found, expected, strict=False):
        assert_close(np.asarray(ours), to_array(theirs), case.tolerance)


def assert_close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    """Checks for the same dtype and shape, and for values that are equal, or close relative to the scale of the
    whole."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if theirs.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs)
        return
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    finite = theirs[np.isfinite(theirs)]
    scale = max(np.abs(finite).max(), 1e-3) if finite.size else 1.0
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale)


def test_every_rule_has_a_case() -> None:
    assert not set(rule) - {case.op for case in CASES} - ELSEWHERE


@pytest.mark.parametrize("name", list(rule))
def test_rules_are_named_after_ops(name: str) -> None:
    if name.startswith("transformers."):
        pytest.importorskip("transformers.integrations.moe", reason="transformers registers the op")
    kinds = torch._ops.OpOverload, torch._ops.HigherOrderOperator
    assert isinstance(operator(name), kinds)


def test_batch_normalization_of_cuda_tensors_returns_the_statistics_that_it_used() -> None:
    x, mean, variance = torch.randn(2, 3, 4, 4), torch.randn(3), torch.rand(3)
    with FakeTensorMode():
        fakes = [torch.empty(given.shape, device="cuda") for given in (x, mean, variance)]
        graph = make_fx(lambda x, mean, variance: list(NORMALIZED(x, None, None, mean, variance, 0.1, 1e-5)))(*fakes)
    imported = import_graph(graph, [x, mean, variance])
    result, *used = evaluate(imported.module, *map(to_array, (x, mean, variance)))
    expected = torch.nn.functional.batch_norm(x, mean, variance)
    assert_close(result, to_array(expected), 1e-6)
    np.testing.assert_allclose(used, [mean.numpy(), (variance + 1e-5).rsqrt().numpy()], rtol=1e-6)
