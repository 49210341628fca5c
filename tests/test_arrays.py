"""Files of arrays that the command line reads: a header is only trusted as far as the file's size confirms it."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.limits import bounded
from trivium.commands.inputs import read_array
from trivium.ir.errors import Error


def npy(header: str | bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Writes a file with such a header."""
    text = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + data


def header(descr: str = "'<f4'", shape: str = "(4,)", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    return file.getvalue()


ATTACKS = {
    "huge": npy(header(shape="(1000000000000,)")),
    "overflowing": npy(header(shape="(1000000000, 1000000000, 1000000000)")),
    "negative": npy(header(shape="(-4, -4)"), bytes(64)),
    "no numbers": npy(header(shape="(True,)"), bytes(64)),
    "long number": npy(header(shape=f"(1{'0' * 4000},)")),
    "power": npy(header(shape="(10**10**10,)")),
    "product": npy("'x' * 99999999999"),
    "deep": npy("(" * 5000 + ")" * 5000),
    "empty elements": npy(header("'|V0'", "(9999999999999,)")),
    "strings": npy(header("'<U1000000000'", "(1,)")),
    "objects": npy(header("'|O'", "(1,)"), bytes(8)),
    "no objects": npy(header("'|O'", "(0,)")),
    "dates": npy(header("'<M8[ns]'", "(1,)"), bytes(8)),
    "large records": npy(header("[('a', '<f4', (100000, 100000))]", "(1,)"), bytes(8)),
    "cut": npy(header(), bytes(3)),
    "cut header": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "long header": npy("{" + " " * 60000 + "}"),
    "version": npy(header(), bytes(16), (9, 0)),
    "order": npy(header(fortran="7"), bytes(16)),
    "nothing": b"",
    "archive": archive(),
    "cut archive": archive()[:40],
    "pickle": b"cos\nsystem\n(S'touch ran'\ntR.",
}


@pytest.mark.parametrize("data", ATTACKS.values(), ids=ATTACKS)
def test_refused(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("x.npy").write_bytes(data)
    with bounded(), pytest.raises(Error, match=r"cannot read x\.npy: \S"):
        read_array(Path("x.npy"))
    assert os.listdir() == ["x.npy"]  # nothing in the file was run


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(Error, match="it is not a file"):
        read_array(tmp_path / "x.npy")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's parser, which reads the header, warns
def test_mutations(tmp_path: Path):
    """For any header, the result is an array of the file's own bytes, or an error of ours."""
    rng = Random(0)
    path = tmp_path / "x.npy"
    read = 0
    for _ in range(500):
        data = bytearray(rng.choice((npy(header(), bytes(16)), archive())))
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(min(len(data), 200))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            assert read_array(path).nbytes <= len(data)
            read += 1
        except Error:
            continue
    assert read > 10


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.int8(3), np.zeros((0, 2)), np.ones(2, np.complex64)]
)
def testread_array(array: np.ndarray, tmp_path: Path):
    np.save(tmp_path / "x.npy", array)
    found = read_array(tmp_path / "x.npy")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
