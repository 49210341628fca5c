"""Results of a suite's runs in a file, so that a run can go on where an earlier one ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def load(path: Path) -> dict[str, Any]:
    """Returns what is kept in a file; nothing where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def store(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1))
