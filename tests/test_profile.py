"""Profiles: the steps of a run, their work, and files of both."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trivium
from tests.page.programs import data_of
from trivium.backends.timeline import Event, Limits, Run, Timeline
from trivium.cli import main
from trivium.compiler.program import Launch
from trivium.executable import Executable

TEXT = """
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xf32>) -> tensor<64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %1 = stablehlo.tanh %0 : tensor<64x128xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}
"""
ARGUMENTS = np.ones((64, 256), np.float32), np.ones((256, 128), np.float32)


@pytest.fixture
def run() -> Executable:
    return trivium.compile(trivium.parse(TEXT), threads=1)


def test_each_launch_has_a_line(run: Executable) -> None:
    profile = run.profile(*ARGUMENTS, runs=3)
    launches = [step for step in run.program.steps if isinstance(step, Launch)]
    assert {line.name for line in profile.lines} == {launch.kernel.name for launch in launches}
    assert sum(line.flops for line in profile.lines) == run.cost_analysis()["flops"]
    assert sum(line.nbytes for line in profile.lines) == run.cost_analysis()["bytes accessed"]
    assert len(profile.timeline.runs) == 3
    assert 0 < sum(line.seconds for line in profile.lines) <= max(run.seconds for run in profile.timeline.runs)
    assert [line.seconds for line in profile.lines] == sorted((line.seconds for line in profile.lines), reverse=True)
    for line in profile.lines:
        assert line.name in str(profile)
        assert line.source.startswith("<text>:")


def test_the_table_is_plain_text_everywhere(run: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Rich would find colours: in notebooks, and if variables ask for them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert "\x1b" not in str(run.profile(*ARGUMENTS, runs=1))


def test_a_step_takes_one_row_with_the_names_of_files(run: Executable) -> None:
    """Whatever it was fused from, and wherever the files are."""
    profile = run.profile(*ARGUMENTS, runs=1)
    source = "/opt/my models/net.py:12, forward, aten.conv2d.default; /root.py:3, f, jit(f)/add; net.py:4, g, mul" * 9
    (rows, before) = (
        str(replace(profile, lines=[replace(line, source=text) for line in profile.lines])).splitlines()
        for text in (source, "net.py:12, forward")
    )
    assert len(rows) == len(before)
    assert sum("net.py:12, forward, aten.conv2d.default; root.py:3, f, jit(f)/add" in row for row in rows) == len(
        profile.lines
    )
    assert not any("models" in row for row in rows)


def test_times_of_a_step_are_added_up_in_a_run_and_their_median_counts(run: Executable) -> None:
    from trivium import profile as profiles

    (first, second) = (step for step in run.program.steps if isinstance(step, Launch))
    runs = [Run(9.0, [Event(first, 0, a), Event(second, 4, 6), Event(first, 6, 6 + a)]) for a in (1.0, 3.0, 2.0)]

    class Loaded:
        name = "main"
        program = run.program

        def timeline(self, arguments: object, runs_: int) -> Timeline:
            return Timeline(runs, Limits(flops=1e6, nbytes=1e6))

    profile = profiles.profile(Loaded(), (), 3)  # type: ignore[arg-type]
    assert [(line.name, line.calls, line.seconds) for line in profile.lines] == [
        (first.kernel.name, 2, 4.0),
        (second.kernel.name, 1, 2.0),
    ]
    (line, _) = profile.lines
    assert line.flops == 2 * 2 * 64 * 256 * 128
    assert line.limit == pytest.approx(line.flops / 1e6)
    assert line.bound == "compute"


def test_programs_of_dynamic_shapes() -> None:
    run = trivium.compile(
        trivium.parse("""
        func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
          %0 = stablehlo.exponential %x : tensor<?xf32>
          return %0 : tensor<?xf32>
        }""")
    )
    (line,) = run.profile(np.ones(100, np.float32), runs=2).lines
    assert line.nbytes == 800


def test_files(tmp_path: Path) -> None:
    program, trace, table = (tmp_path / name for name in ("program.mlir", "trace.json", "table.json"))
    program.write_text(TEXT)
    page = tmp_path / "page.html"
    options = ["--random", "--runs", "2", "--trace", str(trace), "--json", str(table), "--html", str(page)]
    result = CliRunner().invoke(main, ["profile", str(program), *options])
    assert result.exit_code == 0, result.output
    assert "GFLOP/s" in result.output
    steps = json.loads(table.read_text())["steps"]
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"] for event in events} == {step["name"] for step in steps}
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    assert data_of(page.read_text())["times"]["seconds"] > 0


def test_what_cannot_be_profiled(run: Executable, tmp_path: Path) -> None:
    with pytest.raises(trivium.Error, match="runs has 0, expected an integer of at least 1"):
        run.profile(*ARGUMENTS, runs=0)
    with pytest.raises(trivium.ExecutionError, match="was given 1 arguments, expected 2"):
        run.profile(ARGUMENTS[0])
    run.save(tmp_path / "program.so")
    with pytest.raises(trivium.Error, match="it has no stages"):
        trivium.load_executable(tmp_path / "program.so").profile(*ARGUMENTS)
