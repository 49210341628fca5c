"""The code blocks of the manual run as they are: whoever copies them gets what the page says. Those of a page run in
order, in one folder; Python in one namespace, commands of `trivium` in this process."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

for framework in ("torch", "tensorflow", "jax", "onnx"):
    pytest.importorskip(framework)

from tests.docs.reader import write_files
from trivium.cli import main

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/guide.md", "docs/frameworks.md", "docs/gpu.md", "CONTRIBUTING.md", "benchmarks/README.md")

NOT_RUN = {
    "make ": "runs the suite, of which this is a part, or the demo, which trains for minutes",
    "pip install ": "would change the environment of the tests",
    ".venv/bin/": "is for a checkout in which `make` has run",
    "python -m benchmarks": "measures for minutes, and would disturb what runs beside it",
    "pytest -m gpu": "needs a GPU",
    "JAX_PLATFORMS=trivium python train.py": "is a new process with JAX: tests/jax runs such programs",
    "JAX_PLATFORMS=trivium_gpu python train.py": "needs a GPU: tests/jax runs such programs on OpenCL for processors",
}
"""The commands that are not run, by their beginnings, and why."""

SHORTER = {"trivium bench": ("--seconds", "0.1")}
"""Options that only save time."""


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a console, without prompts, comments and output."""
        lines = [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]
        return [re.split(r"\s+#\s", line)[0].strip() for line in lines]


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```(python|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield Block(found[1], text.count("\n", 0, found.start()) + 2, found[2])


def is_left_out(command: str) -> bool:
    return command.startswith(tuple(NOT_RUN))


def run_command(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "trivium", f"{command}: expected a command of trivium, or a reason in NOT_RUN"
    more = next((more for start, more in SHORTER.items() if command.startswith(start)), ())
    ran = CliRunner().invoke(main, [*arguments, *more])
    assert ran.exit_code == 0, f"{command}: {ran.output}"


@pytest.mark.torch
@pytest.mark.tensorflow
@pytest.mark.jax
@pytest.mark.onnx
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(blocks(page))
    assert found
    monkeypatch.chdir(tmp_path)
    if any(block.language == "python" or not all(map(is_left_out, block.commands)) for block in found):
        write_files(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in found:
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(ROOT / page), "exec", dont_inherit=True), names)
        for command in block.commands if block.language == "console" else ():
            if not is_left_out(command):
                run_command(command)


def test_every_reason_is_needed() -> None:
    commands = [command for page in PAGES for block in blocks(page) for command in block.commands]
    assert {start for start in NOT_RUN if not any(command.startswith(start) for command in commands)} == set()
