"""Programs for another kind of processor: they are compiled, shown and saved on any machine, run by an emulator where
there is one, and refused by this processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.cpu.emulation import Emulated, missing
from tests.backends.dense_layer import TEXT, WEIGHTS, X
from tests.suites.aarch64.judging import Case, judged, random_cases, record_cases
from trivium.backends.cpu.target import host, level, machine_of
from trivium.compiler.artifact import lacking
from trivium.ir.errors import Error

OTHER = "x86-64-v2" if host().triple.startswith("aarch64") else "aarch64"


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    if missing():
        pytest.skip(f"there is no {' and no '.join(missing())}")
    return Emulated.built(tmp_path_factory.mktemp("emulated"))


def expect_none_differ(cases: list[Case], emulated: Emulated, folder: Path) -> None:
    assert cases
    assert [failure for failure in judged(cases, emulated, folder) if failure[1]] == []


def test_records_have_the_results_of_the_interpreter(emulated: Emulated, tmp_path: Path) -> None:
    expect_none_differ(list(record_cases(every=12)), emulated, tmp_path)


def test_random_programs(emulated: Emulated, tmp_path: Path) -> None:
    expect_none_differ(list(random_cases(seed=1, count=10)), emulated, tmp_path)


def test_constant_weights(emulated: Emulated, tmp_path: Path) -> None:
    """They are packed as the other processor reads them."""
    artifact = trivium.compile(trivium.parse(TEXT), target="aarch64").loaded.whole()
    (results,) = emulated.run([(artifact, [X])], tmp_path)
    assert not isinstance(results, str), results
    (result,) = results
    np.testing.assert_allclose(result, np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-6)


def test_a_program_for_another_processor_is_shown_and_saved_but_not_run(tmp_path: Path) -> None:
    run = trivium.compile(trivium.parse(TEXT), target=OTHER)
    assert {"aarch64": "fmla", "x86-64-v2": "mulps"}[OTHER] in run.stage("asm")
    assert run.memory_analysis().generated_code_size_in_bytes > 0
    run.save(tmp_path / "program.so")
    machines = f"main was compiled for .*{level(OTHER).triple}.*, and this machine is {host().cpu}"
    for refused in (lambda: run(X), lambda: trivium.load_executable(tmp_path / "program.so"), lambda: run.profile(X)):
        with pytest.raises(Error, match=machines):
            refused()


def test_autotune_cannot_measure_another_processor() -> None:
    with pytest.raises(Error, match=f"autotune measures on this machine, which cannot run code for {OTHER}"):
        trivium.compile(trivium.parse(TEXT), target=OTHER, autotune=True)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels_that_this_processor_has_run_here(name: str) -> None:
    if reasons := lacking(machine_of(level(name)), machine_of(host())):
        pytest.skip(reasons[0])
    run = trivium.compile(trivium.parse(TEXT), target=name)
    np.testing.assert_allclose(run(X)[0], np.tanh(X @ WEIGHTS), rtol=1e-5, atol=1e-6)
    assert run.loaded.whole().machine.cpu == name


def test_unknown_targets() -> None:
    with pytest.raises(Error, match="unknown target 'arm', expected one of x86-64-v2, x86-64-v3, x86-64-v4, aarch64"):
        trivium.compile(trivium.parse(TEXT), target="arm")
