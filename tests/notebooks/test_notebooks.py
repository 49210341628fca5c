"""The notebooks run from top to bottom. They are committed without outputs, so that they say nothing that is stale."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

HANGS = 600
"""Seconds after which a cell counts as one that never ends, on a machine that is busy with other work, too."""

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.torch
@pytest.mark.tensorflow
@pytest.mark.jax
@pytest.mark.onnx
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=HANGS, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
