"""Finds the PJRT plugins: ours; those that `PJRT_NAMES_AND_LIBRARY_PATHS` names, as for JAX; and those that
installed packages declare, for Trivium in the entry points `trivium_plugins`, or for JAX in `jax_plugins`."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from trivium.backends import native
from trivium.backends.table.client import PluginClient
from trivium.backends.table.plugin import Plugin
from trivium.ir.errors import Error

OURS = "trivium"
VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"


@dataclass(frozen=True)
class Found:
    """A plugin that may be loaded. `source` says where it was found."""

    name: str
    source: str
    load: Callable[[], Plugin]


def plugins() -> list[Found]:
    """Returns all plugins, without loading any; of several with one name, the first."""
    found: dict[str, Found] = {}
    for plugin in (_own(), *_named_by_the_environment(), *_declared()):
        found.setdefault(plugin.name, plugin)
    return list(found.values())


@functools.cache
def plugin_client(device: str) -> PluginClient:
    """Returns the client of the plugin with this name or path; the same object every time."""
    return PluginClient(load_plugin(device))


def load_plugin(device: str) -> Plugin:
    """Returns the plugin with this name or path."""
    if device.endswith(".so") or os.sep in device:
        path = Path(device).resolve()
        # Our own library compiles with this process's Python, which must be registered with it.
        return _own().load() if path == Path(native.path()).resolve() else Plugin.load(path, path.name)
    known = {plugin.name: plugin for plugin in plugins()}
    if device not in known:
        expected = ", ".join(("cpu", "opencl:0", *known))
        raise Error(f"unknown device {device!r}; expected one of {expected}, or the path of a PJRT plugin")
    return known[device].load()


def _own() -> Found:
    def load() -> Plugin:
        from trivium.backends import plugin

        return Plugin(plugin.api(), OURS)

    return Found(OURS, "built in", load)


def _named_by_the_environment() -> Iterator[Found]:
    """`name:path`, separated by commas; the path may be that of a JSON file that has `library_path`."""
    for item in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, _, path = item.partition(":")
        yield Found(name.strip(), f"{VARIABLE}: {path}", functools.partial(_load_named, path.strip(), name.strip()))


def _load_named(path: str, name: str) -> Plugin:
    if path.endswith(".json"):
        try:
            path = json.loads(Path(path).read_text())["library_path"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Error(f"{VARIABLE} names {path}, which cannot be read: {error!r}") from None
    return Plugin.load(path, name)


def _declared() -> Iterator[Found]:
    """An entry point of `trivium_plugins` is the library's path, or a function that returns it. One of `jax_plugins` is
    a module that needs JAX, but its library is in the same folder, and does not need JAX."""
    for entry in entry_points(group="trivium_plugins"):
        yield Found(entry.name, f"entry point of {_package(entry)}", functools.partial(_load_declared, entry))
    for entry in entry_points(group="jax_plugins"):
        if entry.value.partition(":")[0] != "trivium.jax_plugin":
            yield Found(entry.name, f"JAX plugin of {_package(entry)}", functools.partial(_load_of_jax, entry))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _load_declared(entry: EntryPoint) -> Plugin:
    try:
        found = entry.load()
        path = found() if callable(found) else found
    except Exception as error:  # of a package that we know nothing of
        raise Error(f"the entry point {entry.value} cannot be loaded: {error!r}") from None
    return Plugin.load(str(path), entry.name)


def _load_of_jax(entry: EntryPoint) -> Plugin:
    module = importlib.util.find_spec(entry.value.partition(":")[0])
    folders = [] if module is None else [*(module.submodule_search_locations or ())]
    libraries = [path for folder in folders for path in sorted(Path(folder).glob("*pjrt*.so"))]
    libraries = libraries or [path for folder in folders for path in sorted(Path(folder).glob("*.so"))]
    if len(libraries) != 1:
        raise Error(f"the package of {entry.value} has {len(libraries)} libraries, expected one, the plugin")
    return Plugin.load(libraries[0], entry.name)
