"""The manual as a site, built by Sphinx: `make docs`. The source folder is the whole repository, so that pages,
notebooks and links between them are the same here and where the repository is browsed."""

import re
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text
from sphinx.application import Sphinx

import trivium

project = "Trivium"
version = release = trivium.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
include_patterns = [
    "docs/**.md",
    "notebooks/*.ipynb",
    "benchmarks/README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
]
root_doc = "docs/README"

html_theme = "furo"
html_title = "Trivium"
html_show_copyright = False
html_static_path = ["assets"]
html_css_files = ["manual.css"]

myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests run the notebooks; the manual shows them as they are committed

add_module_names = False
autodoc_member_order = "bysource"
autodoc_default_options = {"show-inheritance": True}
python_use_unqualified_type_names = True


class MlirLexer(RegexLexer):
    """Colours of programs."""

    name = "MLIR"
    tokens: ClassVar = {
        "root": [
            (r"//.*", Comment.Single),
            (r'"(\\.|[^"\\])*"', String),
            (r"%[\w.$]+(#\d+)?", Name.Variable),
            (r"[@^][\w.$]+", Name.Label),
            (r"![\w.]+|\b(tensor|memref|tuple|complex)\b|\b(x?(i|ui|f|bf)\d+)\b", Keyword.Type),
            (r"[a-z_]\w*\.[a-z_]\w*", Name.Function),
            (r"[A-Za-z_]\w*", Text),
            (r"-?\d+(\.\d*)?([eE][-+]?\d+)?", Number),
            (r"\s+|.", Text),
        ]
    }


def with_code(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Makes code of what docstrings have between single backquotes; Sphinx expects two, and no letter after them."""
    lines[:] = [re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``\\ ", line) for line in lines]


def write_entry(app: Sphinx, error: Exception | None) -> None:
    """Writes the page that a browser opens first, which leads to the manual's."""
    if error is None:
        page = f'<meta http-equiv="refresh" content="0; url={root_doc}.html"><a href="{root_doc}.html">The manual</a>'
        (app.outdir / "index.html").write_text(page)


def setup(app: Sphinx) -> None:
    app.add_lexer("mlir", MlirLexer)
    app.connect("autodoc-process-docstring", with_code)
    app.connect("build-finished", write_entry)
