"""The manual as a site is built without a warning: no link leads nowhere, and every name of the reference exists."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[2]


@pytest.mark.torch
@pytest.mark.tensorflow
@pytest.mark.jax
def test_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d", str(tmp_path / "trees")]
    ran = subprocess.run([*command, ".", str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "from_torch" in (tmp_path / "site/docs/reference/python.html").read_text()
