"""The report of the demo: one self-contained HTML file, made from a Jinja2 template (the usual choice)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from trivium.ir.files import writing


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
    page: str
    """The page of the program, as an element of HTML."""

    @property
    def times(self) -> list[tuple[str, float, int]]:
        """The latencies with their names, and each in percent of the longest one."""
        named = [("eager", self.eager), (self.compiler_name, self.compiler), ("Trivium", self.trivium)]
        known = [(name, seconds) for name, seconds in named if seconds is not None]
        longest = max(seconds for _, seconds in known)
        return [(name, seconds, round(100 * seconds / longest)) for name, seconds in known]

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


def write_report(path: Path, title: str, rows: Sequence[Row], device: str = "") -> None:
    """Writes the report: the table, and side by side the times and the page of each framework's program. `device` is
    the one that Trivium runs on, if that is not the processor, on which the frameworks run."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trivium", "templates"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    page = environment.get_template("report.html.j2").render(title=title, rows=rows, device=device)
    with writing(path) as file:
        file.write(page.encode())
