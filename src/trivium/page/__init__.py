"""The page: a program from the user's line to the machine code, as one HTML file. `data` describes what a page holds,
`build` collects it, `render` writes it; `assets` are the scripts that show it."""

from trivium.page.build import page_of
from trivium.page.data import Page
from trivium.page.render import frame_of, html_of, write_page

__all__ = ["Page", "frame_of", "html_of", "page_of", "write_page"]
