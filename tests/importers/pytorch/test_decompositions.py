"""Every op that we express in terms of others, against PyTorch: the graph that PyTorch makes of it, and its
interpretation."""

import importlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tests.importers.pytorch.cases import Case
from tests.importers.pytorch.test_rules import assert_close, operator
from trivium.importers.pytorch import import_graph
from trivium.importers.pytorch.capture import describing
from trivium.importers.pytorch.composition import COMPOSED
from trivium.importers.pytorch.decompositions import decompositions
from trivium.importers.pytorch.types import to_array
from trivium.ir.interpreter import evaluate

pytestmark = pytest.mark.torch

FAMILIES = ("foreach", "linalg", "others", "quantization", "sampling", "special")
CASES = [
    case
    for family in FAMILIES
    for case in importlib.import_module(f"tests.importers.pytorch.cases.composed_{family}").CASES
]
ELSEWHERE = {"aten._transformer_encoder_layer_fwd.default", "aten._embedding_bag_forward_only.default"}


def graph_of(case: Case) -> tuple[Any, list[Any]]:
    """Returns the graph of an op after its decomposition, and the tensors that it takes."""
    leaves, spec = pytree.tree_flatten((case.args, case.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def function(*given: Any) -> list[Any]:
        replaced = iter(given)
        full = [next(replaced) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(full, spec)
        return pytree.tree_leaves(operator(case.op)(*args, **kwargs))

    with describing():
        return make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")(*tensors), tensors


@pytest.mark.parametrize("case", CASES, ids=str)
def test_decomposition(case: Case) -> None:
    module, tensors = graph_of(case)
    imported = import_graph(module, tensors).module
    imported.verify()
    found = evaluate(imported, *(to_array(x) for x in tensors))
    expected = pytree.tree_leaves(operator(case.op)(*case.args, **case.kwargs))
    for ours, theirs in zip(found, expected, strict=False):
        assert_close(np.asarray(ours), to_array(theirs), case.tolerance)


def test_every_decomposition_has_a_case() -> None:
    assert not {str(op) for op in COMPOSED} - {case.op for case in CASES} - ELSEWHERE
