"""A folder of files that are compiled once and used by every later process: machine code, under keys that the backend
chooses.

The contents of the folder are executed, so only what this user wrote there is ever read. This is decided by the folder
itself, which is opened once per access and used through its descriptor: it belongs to the user and nobody else can
write to it. The path to it does not matter, since the owner of a folder or link along the path can at most lead us to
another folder of the user's own. A folder that fails this check is not used, and the log says why. A single entry that
is damaged, foreign or not a file is treated as absent: it is made again and replaced.

An entry is a digest over key and payload, followed by the payload. The digest detects torn writes, bad disks, and
entries that were copied to another name; it is not a signature, which a folder that only the user can write to does not
need."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

LIMIT = 2 << 30
"""The maximal size in bytes of all entries of a folder together."""

KEPT = 0.75
"""The share of the limit that is kept when entries are removed, so that removals are rare."""

BLIND = 1 / 512
"""The share of the limit below which a process draws how much it writes before it first measures the folder, which
takes a second if it is full. All processes together measure it about once for each such share that they write."""

RESERVE = 8 * BLIND
"""The share of the limit that measuring leaves to them. The probability that they write more in between is e^-8."""

ABANDONED = 3600
"""The age in seconds at which an unfinished file is taken to belong to a process that died."""

DIGEST_BYTES = hashlib.sha256().digest_size
ENTRY, UNFINISHED = ".entry", ".unfinished"
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _Unusable(Exception):
    """The reason why a folder is not used."""


class Cache:
    """The entries of one folder, at most `limit` bytes of them; the least recently used are removed first. No operation
    fails: an entry that cannot be read is absent, and one that cannot be written is not kept."""

    def __init__(self, folder: Path, limit: int = LIMIT):
        self.folder = folder
        self.limit = limit
        self._most = int(limit - RESERVE * limit)
        # The bytes that may be written before the folder is measured again.
        self._room = secrets.randbelow(int(BLIND * limit) + 1)

    def get(self, key: bytes) -> bytes | None:
        """Returns the payload that was put under `key`, if it is whole."""
        with contextlib.suppress(OSError), self._opened() as folder:
            data = self._read(folder, _name(key))
            digest, payload = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
            if digest == _digest(key, payload):
                return payload
        return None

    def put(self, key: bytes, payload: bytes) -> None:
        """Keeps `payload` under `key`. Readers see the whole entry or none."""
        size = DIGEST_BYTES + len(payload)
        if size > self.limit:
            return
        try:
            with self._opened() as folder:
                if size > self._room:
                    self._make_room(folder, size)
                _write(folder, _name(key), _digest(key, payload) + payload)
                self._room -= size
        except OSError as error:
            log.info("the cache in %s could not keep an entry: %s", self.folder, error)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Opens a descriptor of the folder, which is created if it is missing."""
        try:
            descriptor = _open(self.folder)
        except (OSError, _Unusable) as error:
            _warn(self.folder, str(error))
            raise OSError("the folder is not used") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, folder: int, name: str) -> bytes:
        """Returns the bytes of an entry, and marks it as the most recently used."""
        descriptor = os.open(name, READING, dir_fd=folder)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or not _is_private(facts) or facts.st_size > self.limit:
                raise OSError(f"{name} is not an entry")
            os.utime(descriptor)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(facts.st_size)
        finally:
            os.close(descriptor)

    def _make_room(self, folder: int, size: int) -> None:
        """Removes the least recently used entries if `size` more bytes would leave less than the reserve. Only half of
        the space that is then free may be written before the folder is measured again: other processes write too."""
        entries = _entries(folder)
        total = sum(entry.size for entry in entries)
        if total + size > self._most:
            goal = min(int(KEPT * self.limit), self._most - size)
            for entry in sorted(entries, key=lambda entry: entry.used):
                if total <= goal:
                    break
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=folder)
                total -= entry.size
        self._room = max(size, (self._most - total) // 2)


@dataclass(frozen=True)
class _Entry:
    name: str
    size: int
    used: int


def default() -> Cache | None:
    """Returns the cache that the environment names: TRIVIUM_CACHE is a folder, or 0 for none; the default is `trivium`
    in the user's cache folder."""
    setting = os.environ.get("TRIVIUM_CACHE")
    if setting == "0":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = (Path(setting) if setting else Path(base) / "trivium").expanduser().absolute()
    except RuntimeError as error:  # neither HOME nor an entry for the user
        _warn(Path(setting or base), str(error))
        return None
    return _cache(folder)


@functools.cache
def _cache(folder: Path) -> Cache:
    return Cache(folder)


@functools.cache  # once for each folder and reason
def _warn(folder: Path, reason: str) -> None:
    # The log, not `warnings`, which can be set to raise: no compilation may fail for lack of a cache.
    log.warning("the cache in %s is not used: %s; TRIVIUM_CACHE names another folder, or 0 for none", folder, reason)


def _open(folder: Path) -> int:
    """Opens a folder that belongs to the user and that nobody else can write to, and returns its descriptor."""
    if "\0" in str(folder):
        raise _Unusable("its name holds a null character")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    facts = os.fstat(descriptor)
    if _is_private(facts):
        return descriptor
    os.close(descriptor)
    if facts.st_uid != os.geteuid():
        raise _Unusable(f"it belongs to user {facts.st_uid}, expected {os.geteuid()}, who runs this process")
    mode = stat.S_IMODE(facts.st_mode)
    raise _Unusable(f"others can write to it: it has mode {mode:04o}, expected 0700 (chmod go-w)")


def _is_private(facts: os.stat_result) -> bool:
    return facts.st_uid == os.geteuid() and not facts.st_mode & OTHERS_WRITE


def _write(folder: int, name: str, data: bytes) -> None:
    """Writes a file with `data` at `name`, through an unfinished file that is removed in any case."""
    unfinished = f"{secrets.token_hex(16)}{UNFINISHED}"
    try:
        with os.fdopen(os.open(unfinished, WRITING, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def _entries(folder: int) -> list[_Entry]:
    """Lists the entries, and removes unfinished files of processes that died."""
    entries = []
    with os.scandir(folder) as found:
        for file in found:
            with contextlib.suppress(FileNotFoundError):
                if file.name.endswith(ENTRY) and file.is_file(follow_symlinks=False):
                    facts = file.stat(follow_symlinks=False)
                    entries.append(_Entry(file.name, facts.st_size, facts.st_mtime_ns))
                elif file.name.endswith(UNFINISHED) and time.time() - file.stat().st_mtime > ABANDONED:
                    os.unlink(file.name, dir_fd=folder)
    return entries


def _name(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest() + ENTRY


def _digest(key: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + payload).digest()
