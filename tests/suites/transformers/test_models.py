"""A mixture of experts, whose products of groups are an op of transformers, and a seeded sample of the others."""

import random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

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
