"""Makes the pictures of the guide: a small model in PyTorch, its page with times, and the clicks that lead to its
slowest line, in Chromium. Needs PyTorch, playwright, Pillow and Chromium.

python -m docs.pictures            # from the repository's root"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent / "images"
MODEL = """import torch


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.wide = torch.nn.Linear(width, 4 * width)
        self.narrow = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = self.wide(self.norm(x))
        hidden = torch.nn.functional.gelu(hidden)
        return x + self.narrow(hidden)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(256), Block(256)])
        self.head = torch.nn.Linear(256, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        similar = torch.softmax(torch.sin(x @ x.transpose(0, 1)), dim=-1)
        return self.head(similar @ x)


torch.export.save(torch.export.export(Model().eval(), (torch.randn(512, 256),)), "model.pt2")
"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        Path(folder, "model.py").write_text(MODEL)
        for command in (["model.py"], ["-m", "trivium", "show", "model.pt2", "--html", "page.html", "--profile"]):
            subprocess.run([sys.executable, *command], cwd=folder, check=True, env=os.environ)
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 640})
        page.goto(Path(folder, "page.html").as_uri())
        page.locator("main").wait_for()
        take(page, "opened")
        page.locator(".profile tbody button").first.click()
        take(page, "slowest_step")
        page.locator('.listing[data-stage="source"] .line.origin').first.click(position={"x": 90, "y": 9})
        take(page, "slowest_line")
        page.locator('[data-pane="kernels"]').click()
        take(page, "its_kernel")
        page.locator('[data-pane="profile"]').click()
        page.locator('[data-pane="asm"]').click()
        page.locator('.listing[data-stage="kernels"] .line.result', has_text="= load").first.click()
        take(page, "its_instructions")
        browser.close()


def take(page: Any, name: str) -> None:
    """Writes a picture in few colours, as a small file."""
    from PIL import Image

    path = PICTURES / f"{name}.png"
    page.wait_for_timeout(300)
    page.screenshot(path=path)
    few = Image.open(path).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"docs/images/{name}.png: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
