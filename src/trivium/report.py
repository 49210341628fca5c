"""The report of the demo: one self-contained HTML file, made from a Jinja2 template (the usual choice)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from trivium.ir.errors import Error


@dataclass(frozen=True)
class Row:
    """The results for one framework's program. Times are in seconds; `compiler` is `None` if it cannot run."""

    framework: str
    ops_before: int
    ops_after: int
    kernels: int
    accuracy: float
    difference: float
    eager: float
    compiler: float | None
    compiler_name: str
    trivium: float
    program: str
    kernels_text: str

    def cells(self) -> list[str]:
        """Returns the figures as text, in the order of the table."""
        compiler = "-" if self.compiler is None else f"{self.compiler * 1e3:.2f} ms ({self.compiler_name})"
        return [
            str(self.ops_before),
            str(self.ops_after),
            str(self.kernels),
            f"{self.accuracy:.2%}",
            f"{self.difference:.1e}",
            f"{self.eager * 1e3:.2f} ms",
            compiler,
            f"{self.trivium * 1e3:.2f} ms",
        ]


def write_report(path: Path, title: str, rows: Sequence[Row]) -> None:
    """Writes the page: the table, and for each framework the optimized program and its kernels."""
    _write(path, "report.html.j2", title=title, rows=rows)


def _write(path: Path, template: str, **values: object) -> None:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trivium", "templates"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    page = environment.get_template(template).render(**values)
    try:
        path.write_text(page)
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror}") from None
