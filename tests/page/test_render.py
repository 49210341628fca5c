"""The HTML of a page: a single file that needs no others, and in which names never become markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import trivium
from tests.page.programs import data_of, located, place, stages_of
from trivium.ir.errors import Error
from trivium.page import frame_of, html_of, page_of, write_page
from trivium.page.render import OWN_SCRIPTS, asset, packed

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&\u2028"


class Elements(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_names_do_not_become_markup() -> None:
    module = located()
    for op in module.main.body.walk():
        place(op, EVIL, 3, f"part.{EVIL}")
    page = page_of(module, EVIL)
    harmless = Elements(html_of(page_of(located(), "title"))).found
    assert Elements(html_of(page)).found[:-1] == harmless[:-1]
    assert EVIL in json.dumps(data_of(html_of(page)), ensure_ascii=False)
    assert re.fullmatch("[A-Za-z0-9+/=]+", packed(page))


def test_nothing_is_loaded() -> None:
    text = html_of(page_of(located(), "title", "cpu"))
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", text)
    assert not [attributes for _, attributes in Elements(text).found if attributes.keys() & {"src", "href"}]


def test_the_policy_allows_the_scripts_of_the_page_only() -> None:
    text = html_of(page_of(located(), "title"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("name", OWN_SCRIPTS)
def test_scripts_make_text_only(name: str) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", asset(name))


def test_scripts_are_small() -> None:
    assert sum(len(asset(name)) for name in OWN_SCRIPTS) < 75_000


def test_a_page_is_an_element_of_a_notebook() -> None:
    assert trivium.parse("func.func @main() { return }")._repr_html_().startswith("<iframe srcdoc=")
    (frame,) = Elements(frame_of(page_of(located(), '"<b>"'))).found
    assert frame[0] == "iframe"
    assert "<script" in str(frame[1]["srcdoc"])


def test_programs_show_themselves(tmp_path: Path) -> None:
    module = located()
    module.show(tmp_path / "module.html")
    trivium.compile(module).show(tmp_path / "compiled.html")
    assert stages_of((tmp_path / "module.html").read_text()) == ["source", "program"]
    assert stages_of((tmp_path / "compiled.html").read_text())[-1] == "asm"


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Error, match="cannot write"):
        write_page(tmp_path / "no" / "page.html", page_of(located()))
