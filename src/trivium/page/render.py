"""Writes the data of a page, with the scripts and styles that show it, as one HTML file that needs no others. The
content of a page may come from anybody: the data is compressed JSON, in letters and digits that cannot end its element,
the scripts treat it as text and never as markup, and a policy in the page lets a browser run only these scripts, and
load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from trivium.ir.collection import collection_paused
from trivium.ir.files import writing
from trivium.page.data import Page

ASSETS = Path(__file__).parent / "assets"
STYLES = ("page.css",)
OWN_SCRIPTS = (
    *("model.js", "heat.js", "listing.js", "layout.js", "graph.js", "details.js", "search.js"),
    *("charts.js", "flame.js", "profile.js", "passes.js", "main.js"),
)
SCRIPTS = ("vendor/dagre.min.js", *OWN_SCRIPTS)
"""In the order in which they run."""

LEVEL = 4
"""Of compression: higher ones take longer than they are worth."""


def html_of(page: Page) -> str:
    """Returns the page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trivium", "templates"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    scripts = [asset(name) for name in SCRIPTS]
    return environment.get_template("page.html.j2").render(
        title=page.title,
        styles=[Markup(asset(name)) for name in STYLES],
        scripts=[Markup(script) for script in scripts],
        hashes=Markup(" ".join(f"'sha256-{_digest(script)}'" for script in scripts)),
        data=packed(page),
    )


def write_page(path: Path, page: Page) -> None:
    """Writes the page to a file."""
    page_text = html_of(page)
    with writing(path) as file:
        file.write(page_text.encode())


def frame_of(page: Page, height: int = 640) -> str:
    """Returns the page as an element of another page, as notebooks show it."""
    return f'<iframe srcdoc="{escape(html_of(page))}" style="width: 100%; height: {height}px; border: 0"></iframe>'


@collection_paused()
def packed(page: Page) -> str:
    """Returns the data as JSON, compressed by zlib, in base64: a browser unpacks it faster than it would read it."""
    text = json.dumps(page.json(), allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()


@cache
def asset(name: str) -> str:
    """Returns the text of a file that pages contain."""
    text = (ASSETS / name).read_text(encoding="utf-8")
    assert "</script" not in text, name
    assert "</style" not in text, name
    return text


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
