"""Plugins that are older or newer than this interface, and libraries that are not plugins."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.backends.native.test_abi import NATIVE
from tests.backends.table.programs import ADD, X
from trivium.backends import native
from trivium.backends.table.client import PluginClient
from trivium.backends.table.plugin import Plugin, Refusal
from trivium.compiler.driver import CompileOptions


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the path of a plugin that forwards calls to ours, and behaves like an older or a newer one."""
    library = tmp_path_factory.mktemp("plugin") / "other.so"
    source = Path(__file__).with_name("other_plugin.cc")
    flags = ["-std=c++20", "-shared", "-fPIC", "-Wno-invalid-offsetof", "-I", str(NATIVE)]
    subprocess.run(["g++", *flags, str(source), "-o", str(library), "-ldl"], check=True)
    return str(library)


def load(other: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    from trivium.backends import plugin

    plugin.api()
    monkeypatch.setenv("OTHER_PLUGIN_OF", str(native.path()))
    monkeypatch.setenv("OTHER_PLUGIN_KIND", kind)
    return Plugin.load(other, kind)


@pytest.mark.parametrize(("kind", "version"), [("older", (0, 40)), ("newer", (0, 140))])
def test_plugins_of_other_versions(other: str, kind: str, version: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = load(other, kind, monkeypatch)
    assert plugin.version == version
    found = PluginClient(plugin).compile(ADD, CompileOptions())
    np.testing.assert_array_equal(found.execute(X)[0], (X + X).T)


def test_a_function_that_an_older_plugin_lacks(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = load(other, "older", monkeypatch)
    with pytest.raises(Refusal, match=r"older \(PJRT 0.40\) has no PJRT_Event_Create") as refusal:
        plugin.call("Event_Create")
    assert refusal.value.code == "UNIMPLEMENTED"


@pytest.mark.parametrize(("kind", "reason"), [("ancient", "version 0.28"), ("none", "returns no table")])
def test_plugins_that_are_refused(other: str, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(trivium.Error, match=reason):
        load(other, kind, monkeypatch)


def test_the_kit_names_the_check_in_which_a_plugin_dies(other: str, tmp_path: Path) -> None:
    environment = {"OTHER_PLUGIN_OF": str(native.path()), "OTHER_PLUGIN_KIND": "dying", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "trivium.pjrt.check", other]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode > 0
    assert "devices are found by their numbers" in done.stdout
    assert "SIGABRT" in done.stdout


def test_functions_of_extensions(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = load(other, "newer", monkeypatch)
    assert plugin.extension("Layouts")
    assert plugin.extension("Megascale") is None
    plugin.call("Layouts_MemoryLayout_Destroy")
