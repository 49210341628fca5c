"""Generates pages from the code: the reference of ops from their declarations, the coverage from the tables of rules
and the tests, the figures from what the benchmarks kept, and the walk through the compiler from what it makes. A test
fails if a page is stale.

python -m docs.generate            # from the repository's root; needs every framework"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.memory_report import memory_page
from benchmarks.report import performance_page
from docs.coverage import coverage_page
from docs.ops import ops_page
from docs.walk import walk_page

DOCS = Path(__file__).parent

PAGES: dict[str, Callable[[], str]] = {
    "reference/ops.md": ops_page,
    "coverage.md": coverage_page,
    "performance.md": performance_page,
    "memory.md": memory_page,
    "how_it_works.md": walk_page,
}
"""The generated pages, by their path in this folder."""


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
