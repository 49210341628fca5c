"""The times on a page belong to its steps, and its memory is the plan that the program runs with."""

from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.page.programs import LOOP, data_of, located
from trivium.compiler import lower
from trivium.compiler.program import Arena, Launch, walk
from trivium.compiler.stages import CompileOptions
from trivium.executable import Executable
from trivium.page import page_of
from trivium.page.data import Held, Page, Times
from trivium.page.times import _spans, _used
from trivium.page.traced import traced
from trivium.profile import Profile

ARGUMENTS = np.ones((8, 16), np.float32), np.ones((16, 16), np.float32)


@pytest.fixture(scope="module")
def run() -> Executable:
    return trivium.compile(located(), threads=1)


@pytest.fixture(scope="module")
def profile(run: Executable) -> Profile:
    return run.profile(*ARGUMENTS, runs=3)


def times(run: Executable, profile: Profile) -> tuple[Page, Times]:
    page = page_of(run.module, device="cpu", machine_code=False, profile=profile)
    assert page.times is not None
    return page, page.times


def test_each_time_belongs_to_its_launch(run: Executable, profile: Profile) -> None:
    page, found = times(run, profile)
    launches = page.stage("launches")
    assert launches is not None
    assert [launches.items[step.number].label for step in found.steps] == [line.name for line in profile.lines]
    assert [step.seconds for step in found.steps] == [line.seconds for line in profile.lines]
    assert {step.number for step in found.steps} == {
        i for i, item in enumerate(launches.items) if item.kind == "launch"
    }
    assert (found.seconds, found.runs) == (profile.seconds, 3)


def test_a_program_that_is_compiled_for_its_page_is_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, real = [], lower.lower
    monkeypatch.setattr(lower, "lower", lambda *given: lowered.append(real(*given)) or lowered[-1])
    run = Executable(traced(located(), "cpu", CompileOptions(threads=1)))
    page = page_of(located(), device="cpu", profile=run.profile(*ARGUMENTS, runs=1))
    assert lowered == [run.program]
    assert page.times is not None
    assert page.passes is not None


def test_a_program_that_was_compiled_before_is_not_lowered_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lowered, real = [], lower.lower
    monkeypatch.setattr(lower, "lower", lambda *given: lowered.append(real(*given)) or lowered[-1])
    run = trivium.compile(located(), threads=1)
    run.show(tmp_path / "page.html", profile=run.profile(*ARGUMENTS, runs=1))
    run.explain()
    assert lowered == [run.program]
    page = data_of((tmp_path / "page.html").read_text())
    fresh = page_of(located(), device="cpu", machine_code=False)
    for name in ("graph", "launches", "kernels"):
        origins = [item.origins for stage in fresh.stages if stage.name == name for item in stage.items]
        (shown,) = [stage for stage in page["stages"] if stage["name"] == name]
        assert [item.get("origins", []) for item in shown["items"]] == origins
    assert page["passes"] is not None


def test_the_arena_holds_each_array_from_the_step_that_writes_it_to_the_last_that_reads_it(
    run: Executable, profile: Profile
) -> None:
    _, found = times(run, profile)
    steps = list(walk(run.program.steps))
    assert found.arena == run.program.arena_size
    assert {held.name for held in found.held} == {v.name for v in run.program.values() if isinstance(v.storage, Arena)}
    for held in found.held:
        assert held.spans == [(held.steps[0], held.steps[-1])]
        assert all(isinstance(steps[number], Launch) for number in held.steps)
        assert 0 <= held.offset <= held.offset + held.nbytes <= found.arena
    assert 0 < max(found.used) <= found.arena


def test_arrays_of_a_loop_are_held_for_all_of_it() -> None:
    run = trivium.compile(trivium.parse(LOOP))
    profile = run.profile(np.int32(3), np.ones(4, np.float32), runs=2)
    page, found = times(run, profile)
    launches = page.stage("launches")
    assert launches is not None
    loop = next(number for number, item in enumerate(launches.items) if item.label == "while")
    assert loop not in {step.number for step in found.steps}
    assert max(step.calls for step in found.steps) > 1
    carried = [held for held in found.held if min(held.steps) < loop < max(held.steps)]
    assert carried
    assert all(last == len(launches.items) - 1 for held in carried for _, last in held.spans)


def test_programs_of_dynamic_shapes_are_shown_as_they_were_profiled(tmp_path: Path) -> None:
    run = trivium.compile(
        trivium.parse("""
        func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
          %0 = stablehlo.exponential %x : tensor<?xf32>
          return %0 : tensor<?xf32>
        }""")
    )
    run.show(tmp_path / "page.html", profile=run.profile(np.ones(100, np.float32), runs=2))
    text = (tmp_path / "page.html").read_text()
    assert "100xf32" in str(data_of(text))
    assert data_of(text)["times"]["seconds"] > 0


def test_a_profile_of_another_program_is_refused(profile: Profile, tmp_path: Path) -> None:
    other = trivium.compile(trivium.parse(LOOP))
    with pytest.raises(trivium.Error, match="the profile is of another program"):
        other.show(tmp_path / "page.html", profile=profile)
    with pytest.raises(trivium.Error, match="is another program than the one that was compiled"):
        page_of(other.module, device="cpu", profile=profile)


def test_bytes_that_arrays_share_count_once() -> None:
    held = [
        Held("a", "", 0, 64, [(0, 1)], [0]),
        Held("b", "", 32, 64, [(1, 2)], [1]),
        Held("c", "", 128, 8, [(1, 1)], [1]),
    ]
    assert _used(held, 4) == [64, 104, 64, 0]


@pytest.mark.parametrize(
    ("points", "spans"),
    [(0b0011, [(0, 0)]), (0b0110, [(0, 1)]), (0b1101, [(0, 1)]), (0b110000_000001, [(0, 0), (5, 5)])],
)
def test_a_value_is_held_at_a_step_if_it_is_alive_at_one_of_its_points(
    points: int, spans: list[tuple[int, int]]
) -> None:
    assert _spans(points) == spans
