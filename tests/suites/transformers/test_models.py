"""A mixture of experts, whose products of groups are an op of transformers, a seeded sample of the others, and what the
suite says of runs."""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.suites.transformers.__main__ import _outcome
from tests.suites.transformers.architectures import ARCHITECTURES, ENCODERS
from tests.suites.transformers.models import TOLERANCE, inference, training

pytestmark = pytest.mark.torch

(MIXTRAL,) = [entry for entry in ARCHITECTURES if entry.name == "Mixtral"]


@pytest.mark.filterwarnings("ignore")
def test_a_mixture_of_experts_is_one_graph() -> None:
    assert inference(MIXTRAL, fullgraph=True, options={"fallback": False}) <= TOLERANCE
    assert training(MIXTRAL, fullgraph=True, options={"fallback": False}) <= TOLERANCE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("architecture", random.Random(0).sample(ENCODERS, 1), ids=lambda entry: entry.name)
def test_architectures_are_equal(architecture) -> None:
    assert inference(architecture) <= TOLERANCE


@pytest.mark.filterwarnings("ignore")
def test_outcomes_say_what_ran_in_pytorch() -> None:
    def run() -> float:
        torch._dynamo.reset()
        halves = torch.compile(lambda x: torch.view_as_real(x.chalf()).float(), backend="trivium")(torch.ones(2))
        return float(abs(halves[:, 0] - 1).max())

    assert _outcome(run) == _outcome(run) == "equal, with ops in PyTorch"
    assert _outcome(lambda: 0.0) == "equal"
    assert _outcome(lambda: 1.0) == "differs by 1.0e+00"
    assert _outcome(lambda: 1 / 0) == "failed: ZeroDivisionError: division by zero"
