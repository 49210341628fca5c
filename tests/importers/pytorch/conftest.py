"""Archives of `torch.export.save`, and a file that shows whether anything in them was run."""

from pathlib import Path

import pytest

import trivium


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved program with a dynamic shape."""
    from torch.export import Dim, export, save

    from tests.importers.pytorch.programs import ARGUMENTS, KEYWORDS, Small

    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    shapes = {"x": {0: Dim("rows", min=3, max=50)}, "pair": [None, None], "shift": None, "times": None}
    save(export(Small(), ARGUMENTS, KEYWORDS, dynamic_shapes=shapes), path)
    return path


@pytest.fixture(scope="module")
def loaded(genuine: Path) -> trivium.Module:
    return trivium.load(genuine)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torch import nn, ones
    from torch.export import export, save

    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    save(export(nn.Linear(2, 2), (ones(1, 2),)), path)
    return path


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that is created if anything in a model is run."""
    return tmp_path / "it_ran"
