"""Files that users name: a file that is written over does not change under a program that was loaded from it."""

import os
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium.ir.errors import Error
from trivium.ir.files import path_of, writing

WEIGHTS = np.arange(1 << 16, dtype=np.float32)
SMALL = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"


def with_weights() -> trivium.Module:
    kind, elements = f"tensor<{WEIGHTS.size}xf32>", WEIGHTS.tobytes().hex()
    text = f'%0 = stablehlo.constant dense<"0x{elements}"> : {kind}'
    return trivium.parse(f"func.func @main() -> {kind} {{ {text} return %0 : {kind} }}")


def test_tensors_of_a_loaded_program_stay_when_its_file_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "program.mlirbc"
    with_weights().save(path)
    loaded = trivium.load(path)
    trivium.parse(SMALL).save(path)
    np.testing.assert_array_equal(trivium.evaluate(loaded)[0], WEIGHTS)
    assert trivium.evaluate(trivium.load(path), 2.0)[0] == 2
    loaded.save(path)
    np.testing.assert_array_equal(trivium.evaluate(trivium.load(path))[0], WEIGHTS)
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_stays_and_the_file_that_it_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    with writing(link) as written:
        written.write(b"after")
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o640)


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(TypeError), writing(file) as written:
        written.writelines([b"after" * 10000, None])  # type: ignore[list-item]
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


def test_devices_are_written_to() -> None:
    with writing(Path(os.devnull)) as file:
        file.write(b"nothing")
    assert Path(os.devnull).is_char_device()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"cannot write .*/no/file: No such file"), writing(tmp_path / "no" / "file"):
        pass


@pytest.mark.parametrize(("path", "message"), [(None, "is a NoneType"), (b"x", "is a bytes"), ("a\0b", "null char")])
def test_what_is_no_path(path: object, message: str) -> None:
    with pytest.raises(Error, match=f"the path {message}" if "is a" in message else message):
        path_of(path)
