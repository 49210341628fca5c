"""Archives of `torch.export.save` with members replaced: hostile files made from genuine ones."""

import json
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Edit = Callable[[Any], Any]


class Payload:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.marker), "w"))


def payload(marker: Path) -> bytes:
    """Returns a pickle that creates a file when it is loaded."""
    return pickle.dumps(Payload(marker), protocol=2)


def command(marker: Path) -> str:
    """Returns a Python expression that creates a file."""
    return f"__import__('pathlib').Path({str(marker)!r}).touch()"


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write(path: Path, content: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def edited(path: Path, source: Path, changes: Mapping[str, bytes | Edit | None]) -> Path:
    """Writes the archive `source` with some members changed. `changes` maps their names, without the root folder, to
    other bytes, to a function of their JSON (which may change it in place), or to None, which leaves them out."""
    content = members(source)
    root = next(iter(content)).partition("/")[0]
    for name, change in changes.items():
        full = f"{root}/{name}"
        if change is None:
            del content[full]
        elif isinstance(change, bytes):
            content[full] = change
        else:
            data = json.loads(content[full])
            result = change(data)
            content[full] = json.dumps(data if result is None else result).encode()
    return write(path, content)


def replaced(data: Any, old: str, new: str) -> Any:
    """Returns JSON with a text replaced wherever it is a key or a value."""
    if isinstance(data, dict):
        return {replaced(key, old, new): replaced(value, old, new) for key, value in data.items()}
    if isinstance(data, list):
        return [replaced(value, old, new) for value in data]
    return new if data == old else data
