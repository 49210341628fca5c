"""Artifacts that this process or an earlier one made, found by everything that determines them: the module, the target,
the options, and all code that contributes to the result. If one is found, nothing is lowered or emitted."""

from __future__ import annotations

import functools
import hashlib
import logging
import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import llvmlite
import ml_dtypes
import numpy as np

from trivium.backends import cache, native
from trivium.backends.artifact import FORMAT, from_bytes, to_bytes
from trivium.compiler.artifact import Artifact
from trivium.compiler.digest import module_digest
from trivium.compiler.stages import Stages
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.ops import CustomCall

log = logging.getLogger(__name__)

ROOMS = ("trivium.ir", "trivium.compiler", "trivium.backends")
"""The packages whose code determines an artifact."""


def find_or_make(stages: Stages, make: Callable[[Stages], Artifact]) -> Artifact:
    """Returns the artifact of these stages: from the cache, or as `make` makes it, which the cache then keeps."""
    kept = cache.default()
    if kept is None or not _follows_from_its_text(stages.module):
        return make(stages)
    digest = module_digest(stages.module)
    key = _key(digest.whole, stages)
    found = _read(kept.get(key))
    if found is not None:
        stages.require_structure(digest.structure)
        return found
    made = make(stages)
    kept.put(key, to_bytes(made))
    return made


def _read(data: bytes | None) -> Artifact | None:
    try:
        return None if data is None else from_bytes(data)
    except Error as error:
        log.info("an artifact in the cache is made again: %s", error)
        return None


def _key(digest: bytes, stages: Stages) -> bytes:
    options = stages.options
    facts = stages.target, options.fast_math, options.traced, options.autotune, sorted(_custom_calls(stages.module))
    return b"\0".join((b"artifact", _producer(), digest, repr(facts).encode()))


def _follows_from_its_text(module: Module) -> bool:
    """Whether the compiled module depends only on things that have a digest: ops defined elsewhere, and lowerings of
    custom calls, are Python code of their own."""
    own = all(type(op).__module__.startswith("trivium.") for op in module.walk())
    return own and all(CUSTOM_CALLS[target].lower is None for target in _targets(module) & CUSTOM_CALLS.keys())


def _custom_calls(module: Module) -> Iterator[tuple[str, ...]]:
    """Yields the facts about registered custom calls that the compiler uses."""
    for target in _targets(module):
        known = CUSTOM_CALLS.get(target)
        facts = (known.effects, bool(known.evaluate), bool(known.infer), bool(known.native)) if known else ()
        yield target, *map(str, facts)


def _targets(module: Module) -> set[str]:
    return {op.call_target_name for op in module.walk() if isinstance(op, CustomCall)}


@functools.cache
def _producer() -> bytes:
    """Returns a digest of the compiler itself, sources included: after a change to it, nothing that was made before is
    found."""
    versions = FORMAT, native.VERSION, llvmlite.__version__, np.__version__, ml_dtypes.__version__
    whole = hashlib.sha256(repr((*versions, platform.python_version())).encode())
    for room in ROOMS:
        for folder in import_module(room).__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                whole.update(f"{room}/{file.relative_to(folder)}".encode() + hashlib.sha256(file.read_bytes()).digest())
    return whole.digest()
