"""Bad input: each raises one clear error, with the op and the user's line."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import trivium
from tests.importers.pytorch.programs import foreign, foreign_pair
from trivium.importers.common import Rules
from trivium.importers.pytorch import rule

pytestmark = pytest.mark.torch


class Exotic(nn.Module):
    def forward(self, x):
        return foreign(foreign_pair(x)[0]), foreign_pair(x + 1)


def test_all_unsupported_ops_are_listed_at_once() -> None:
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_torch(Exotic(), (torch.ones(3, 3),))
    text = str(caught.value)
    counts = {op.name: op.count for op in caught.value.ops}
    assert counts["trivium_tests.foreign_pair.default"] == 2
    assert counts["trivium_tests.foreign.default"] == 1
    assert "2 ops have no rule" in text
    assert "test_errors.py:" in text


def test_an_unsupported_argument_has_its_place() -> None:
    class Wide(nn.Module):
        def forward(self, x):
            return torch.linalg.lu_factor_ex(x, pivot=False)

    with pytest.raises(
        trivium.UnsupportedOpError, match=r"lu_factor_ex.*argument pivot has False, expected True"
    ) as caught:
        trivium.from_torch(Wide(), (torch.eye(2),))
    assert "test_errors.py:" in str(caught.value)
    assert "while: importing 'main'" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "expected"),
    [(lambda x: x, "is a function, expected an nn.Module"), (nn.Linear(4, 2), "torch.export cannot capture Linear")],
)
def test_objects_that_are_not_models(model, expected: str) -> None:
    with pytest.raises(trivium.Error, match=expected):
        trivium.from_torch(model, (torch.ones(1, 3),))


def test_parameters_of_an_unknown_kind() -> None:
    with pytest.raises(trivium.Error, match="parameters has 'frozen', expected one of"):
        trivium.from_torch(nn.Linear(3, 2), (torch.ones(1, 3),), parameters="frozen")


def test_rules_are_registered_once() -> None:
    table = Rules("Test")
    table.add("add", lambda: None)
    with pytest.raises(trivium.Error, match="add has two rules"):
        table.add("add", lambda: None)
    table.add("add", lambda: None, since=13)
    assert len(table) == 1
    with pytest.raises(trivium.Error, match="has the name ''"):
        table.add("", lambda: None)


def test_the_newest_rule_that_is_not_too_new() -> None:
    table = Rules("Test")
    table.add("add", one := lambda: None, since=1)
    table.add("add", thirteen := lambda: None, since=13)
    assert table.find("add", 7) is one
    assert table.find("add", 13) is table.find("add") is thirteen
    assert table.find("add", 0) is None
    assert "aten.add.Tensor" in rule
