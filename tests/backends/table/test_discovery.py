"""Which plugins are found, and how libraries that are not plugins are reported."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.backends import native
from trivium.backends.table import discovery
from trivium.backends.table.discovery import VARIABLE, load_plugin, plugins


def test_ours_is_always_there() -> None:
    assert next(plugin.name for plugin in plugins()) == "trivium"
    assert load_plugin("trivium").address == load_plugin(str(native.path())).address


def test_the_environment_names_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    described = tmp_path / "plugin.json"
    described.write_text(json.dumps({"library_path": str(native.path()), "create_options": {}}))
    monkeypatch.setenv(VARIABLE, f"first:{native.path()},second:{described},third:{tmp_path}/none.json")
    assert [plugin.name for plugin in plugins()][:4] == ["trivium", "first", "second", "third"]
    assert load_plugin("first").version == load_plugin("second").version == (0, 93)
    with pytest.raises(trivium.Error, match=r"none.json, which cannot be read"):
        load_plugin("third")


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {
        "trivium_plugins": [
            EntryPoint("vendor", "trivium.backends.native:path", "trivium_plugins"),
            EntryPoint("broken", "trivium.nowhere:path", "trivium_plugins"),
        ],
        "jax_plugins": [
            EntryPoint("beside", "trivium.backends.native", "jax_plugins"),
            EntryPoint("ours", "trivium.jax_plugin", "jax_plugins"),
        ],
    }
    monkeypatch.setattr(discovery, "entry_points", lambda group: declared[group])
    assert [plugin.name for plugin in plugins()] == ["trivium", "vendor", "broken", "beside"]
    assert load_plugin("vendor").version == (0, 93)
    assert load_plugin("beside").version == (0, 93)
    with pytest.raises(trivium.Error, match=r"the entry point trivium.nowhere:path cannot be loaded"):
        load_plugin("broken")


def test_unknown_names_and_files() -> None:
    with pytest.raises(
        trivium.Error, match=r"unknown device 'nowhere'; expected one of cpu, opencl:0, trivium, or the path"
    ):
        load_plugin("nowhere")
    with pytest.raises(trivium.Error, match="cannot be loaded"):
        load_plugin("/nowhere/plugin.so")
    with pytest.raises(trivium.Error, match="has no function GetPjrtApi"):
        load_plugin(str(next(Path(np.__file__).parent.rglob("*.so"))))
