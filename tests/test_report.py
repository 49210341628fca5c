"""The demo's report: times beside the pages of the programs."""

from pathlib import Path

import pytest

import trivium
from tests.page.programs import located
from trivium.ir.errors import Error
from trivium.page import frame_of
from trivium.report import Row, write_report


def row(framework: str, compiler: float | None) -> Row:
    page = frame_of(trivium.compile(located()).page(machine_code=False))
    return Row(framework, 10, 8, 2, 0.98, 1e-7, 0.004, compiler, "XLA", 0.001, page)


def test_the_longest_time_is_the_whole_width() -> None:
    assert row("JAX", 0.002).times == [("eager", 0.004, 100), ("XLA", 0.002, 50), ("Trivium", 0.001, 25)]
    assert [name for name, _, _ in row("ONNX", None).times] == ["eager", "Trivium"]


def test_programs_are_side_by_side(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", "Programs of <everybody>", [row("PyTorch", 0.002), row("ONNX", None)])
    text = (tmp_path / "report.html").read_text()
    assert text.count("<iframe srcdoc=") == 2
    assert "Programs of &lt;everybody&gt;" in text
    assert text.index("4.00 ms") < text.index("<iframe") < text.index("<h2>ONNX")


def test_another_device_is_named(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", "Programs", [row("JAX", 0.002)], "opencl:0 (a GPU)")
    text = (tmp_path / "report.html").read_text()
    assert "Trivium runs on opencl:0 (a GPU), the frameworks and their compilers on the processor." in text
    assert "profile" not in text.partition("<iframe")[0].rpartition("<p>")[2].partition("<code>")[0]


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Error, match="cannot write"):
        write_report(tmp_path / "no" / "report.html", "Programs", [])
