"""The cache: what it keeps, and that no folder or entry of another user is ever read. Tests of other users' folders let
this process take itself for another user, so that they need no special rights."""

from __future__ import annotations

import errno
import logging
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trivium.backends import cache as module
from trivium.backends.cache import DIGEST_BYTES, Cache

KEY, PAYLOAD = b"key", b"machine code"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "folder")


@pytest.fixture(autouse=True)
def _every_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resets the warning, which a process logs once per folder; here, once per test."""
    module._warn.cache_clear()


def kept(cache: Cache) -> Path:
    """Returns the file of an entry that was just stored."""
    cache.put(KEY, PAYLOAD)
    (file,) = cache.folder.iterdir()
    return file


def names(cache: Cache) -> list[str]:
    return sorted(file.name for file in cache.folder.iterdir())


def test_what_was_put_is_found(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, PAYLOAD)
    cache.put(b"another", b"")
    assert cache.get(KEY) == PAYLOAD
    assert cache.get(b"another") == b""
    assert Cache(cache.folder).get(KEY) == PAYLOAD
    cache.put(KEY, b"newer")
    assert cache.get(KEY) == b"newer"


def test_folder_and_entries_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = kept(Cache(tmp_path / "a" / "folder"))
    finally:
        os.umask(before)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


# Folders that are not used


def assert_unused(cache: Cache, log: pytest.LogCaptureFixture, reason: str) -> None:
    """Checks that the cache finds and writes nothing, and warns once."""
    before = names(cache) if cache.folder.is_dir() else None
    with log.at_level(logging.WARNING):
        assert cache.get(KEY) is None
        cache.put(b"another", PAYLOAD)
        assert cache.get(b"another") is None
    (record,) = log.records
    assert f"the cache in {cache.folder} is not used: {reason}" in record.getMessage()
    assert (names(cache) if cache.folder.is_dir() else None) == before


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to(cache: Cache, caplog: pytest.LogCaptureFixture, mode: int) -> None:
    kept(cache)
    cache.folder.chmod(mode)
    assert_unused(cache, caplog, f"others can write to it: it has mode {mode:04o}, expected 0700")


def test_a_folder_of_another_user(
    cache: Cache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(cache)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert_unused(cache, caplog, f"it belongs to user {owner}, expected {owner + 1}")


def test_a_link_to_a_folder_of_another_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept(Cache(tmp_path / "theirs"))
    (tmp_path / "theirs").chmod(0o777)
    (tmp_path / "link").symlink_to("theirs")
    assert_unused(Cache(tmp_path / "link"), caplog, "others can write to it")


def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    assert_unused(Cache(tmp_path / "file" / "folder"), caplog, "[Errno 20] Not a directory")


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_something_else_in_place_of_the_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "folder")
    assert_unused(Cache(tmp_path / "folder"), caplog, "[Errno 17] File exists")


def test_a_folder_with_an_impossible_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert_unused(Cache(tmp_path / "null\0character"), caplog, "its name holds a null character")


# Invalid entries


def in_its_place(file: Path, make: Callable[[Path], None]) -> None:
    file.unlink()
    make(file)


def to_a_copy(file: Path) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    in_its_place(file, lambda path: path.symlink_to(copy))


def sparse(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(module.LIMIT + 1)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "truncated within the digest": lambda file: file.write_bytes(file.read_bytes()[: DIGEST_BYTES - 1]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "one bit": lambda file: file.write_bytes(file.read_bytes()[:-1] + bytes([file.read_bytes()[-1] ^ 1])),
    "of the old form": lambda file: file.write_bytes(module.hashlib.sha256(PAYLOAD).digest() + PAYLOAD),
    "too large": sparse,
    "writable by the group": lambda file: file.chmod(0o620),
    "writable by all": lambda file: file.chmod(0o602),
    "a link": to_a_copy,
    "a link to itself": lambda file: in_its_place(file, lambda path: path.symlink_to(path)),
    "a link to a device": lambda file: in_its_place(file, lambda path: path.symlink_to("/dev/zero")),
    "a fifo": lambda file: in_its_place(file, os.mkfifo),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_absent_and_gets_replaced(cache: Cache, damage: Callable[[Path], object]) -> None:
    file = kept(cache)
    damage(file)
    began = time.monotonic()
    assert cache.get(KEY) is None
    assert time.monotonic() - began < 1
    cache.put(KEY, PAYLOAD)
    assert cache.get(KEY) == PAYLOAD
    assert not file.is_symlink()


def test_an_entry_of_another_user_is_absent(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(cache)
    true_facts = os.fstat

    def facts(descriptor: int) -> os.stat_result:
        found = true_facts(descriptor)
        owner = found.st_uid + stat.S_ISREG(found.st_mode)
        return os.stat_result((*found[:4], owner, *found[5:]))

    monkeypatch.setattr(os, "fstat", facts)
    assert cache.get(KEY) is None


def test_a_folder_in_place_of_an_entry(cache: Cache) -> None:
    file = kept(cache)
    in_its_place(file, Path.mkdir)
    assert cache.get(KEY) is None
    cache.put(KEY, PAYLOAD)
    assert names(cache) == [file.name]


def test_an_entry_under_the_name_of_another_is_absent(cache: Cache) -> None:
    first = kept(cache)
    cache.put(b"another", b"other code")
    (second,) = (file for file in cache.folder.iterdir() if file != first)
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    assert cache.get(KEY) is None
    assert cache.get(b"another") is None


def test_descriptors_are_closed(cache: Cache) -> None:
    in_its_place(kept(cache), Path.mkdir)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        cache.get(KEY)
        cache.put(KEY, PAYLOAD)
        cache.put(b"another", PAYLOAD)
        cache.get(b"another")
    assert len(os.listdir("/proc/self/fd")) == before


# Writes that fail


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("function", ["fdopen", "replace"])
def test_a_failed_write_leaves_nothing(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, error: BaseException, function: str
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        if isinstance(error, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                cache.put(KEY, PAYLOAD)
        else:
            cache.put(KEY, PAYLOAD)
    assert names(cache) == []
    cache.put(KEY, PAYLOAD)
    assert cache.get(KEY) == PAYLOAD


def test_a_full_disk(cache: Cache) -> None:
    """The limit on the size of files simulates a full disk: the write itself fails, halfway."""
    program = (
        "import pathlib, resource, signal, sys; from trivium.backends.cache import Cache\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "cache = Cache(pathlib.Path(sys.argv[1])); cache.put(b'large', bytes(100000)); cache.put(b'small', b'x')\n"
        "assert cache.get(b'large') is None and cache.get(b'small') == b'x'"
    )
    subprocess.run([sys.executable, "-c", program, str(cache.folder)], check=True, timeout=60)
    assert len(names(cache)) == 1


def test_processes_write_the_same_entries_at_once(cache: Cache) -> None:
    program = (
        "import pathlib, sys; from trivium.backends.cache import Cache\n"
        "cache = Cache(pathlib.Path(sys.argv[1]), limit=40000)\n"
        "for turn in range(300):\n"
        "    key = b'%d' % (turn % 7)\n"
        "    found = cache.get(key); assert found in (None, key * 5000), found\n"
        "    cache.put(key, key * 5000)"
    )
    arguments = [sys.executable, "-c", program, str(cache.folder)]
    processes = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert all(name.endswith(module.ENTRY) for name in names(cache))


# The limit


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    for number in range(9):
        cache.put(b"%d" % number, bytes(1000))
        for file in tmp_path.iterdir():  # makes everything a second older
            used = file.stat().st_mtime - 1
            os.utime(file, (used, used))
    assert cache.get(b"0") == bytes(1000)  # the oldest, just used
    cache.put(b"new", bytes(3000))
    present = [key for key in (b"0", b"1", b"2", b"3", b"8", b"new") if cache.get(key) is not None]
    assert present == [b"0", b"8", b"new"]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 10_000


def test_the_limit_holds_whatever_is_put(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=50_000)
    for number in range(200):
        cache.put(b"%d" % number, bytes(37 * number))
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 50_000
    assert cache.get(b"199") == bytes(37 * 199)


def test_processes_that_write_little_seldom_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, entries = [], module._entries
    monkeypatch.setattr(module, "_entries", lambda folder: (measured.append(folder), entries(folder))[1])
    for number in range(400):
        Cache(tmp_path, limit=512_000).put(b"%d" % number, bytes(100 - DIGEST_BYTES))
    assert 10 < len(measured) < 100  # 40 are expected: once for each 1000 bytes of 40,000


def test_what_exceeds_the_limit_alone_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1000)
    cache.put(KEY, PAYLOAD)
    cache.put(b"large", bytes(1000))
    assert cache.get(b"large") is None
    assert cache.get(KEY) == PAYLOAD


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(bytes(5000))
    cache = Cache(tmp_path, limit=2000)
    for number in range(10):
        cache.put(b"%d" % number, bytes(900))
    assert (tmp_path / "notes.txt").exists()


def test_what_a_dead_process_left_is_removed(cache: Cache) -> None:
    kept(cache)
    old, young = (cache.folder / f"{name}{module.UNFINISHED}" for name in ("old", "young"))
    for file in (old, young):
        file.touch()
    os.utime(old, (0, 0))
    Cache(cache.folder, limit=100).put(b"another", PAYLOAD)  # which measures the folder
    assert not old.exists()
    assert young.exists()


# Choice of the folder


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def folder() -> Path | None:
        found = module.default()
        return found.folder if found else None

    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path / "x"))
    assert folder() == tmp_path / "x"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIVIUM_CACHE", "y")
    assert folder() == tmp_path / "y"
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    assert folder() is None
    monkeypatch.delenv("TRIVIUM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "z"))
    assert folder() == tmp_path / "z" / "trivium"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".cache" / "trivium"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "~nobody-of-this-name/cache")
    assert module.default() is None
    assert "is not used" in caplog.text
