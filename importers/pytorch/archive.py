"""The archives that `torch.export.save` writes (`.pt2`), read as data: a program in JSON and the bytes of its tensors.
Nothing is unpickled, no path is followed, and nothing unpacks to more than the size of the archive. Parts that require
a pickle are rejected by name."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import torch
from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE as DTYPES_BY_CODE

from trivium.ir.errors import Error

Json = dict[str, Any]
"""An object of the JSON in a file. Nothing about its content is certain: what reads it rejects what does not fit."""

MAX_VIEW = 1 << 28
"""Bytes that a tensor may represent beyond those in the archive: with strides of 0, a few bytes represent many."""

STRIDED = 7
"""The code of the only layout that has raw bytes: dense, with strides."""


@dataclass(frozen=True)
class Contents:
    """The contents of an archive: the program as its JSON, and the tensors by their names."""

    program: Json
    state: Mapping[str, torch.Tensor]
    constants: Mapping[str, torch.Tensor]


class Archive:
    """A zip archive whose members are stored uncompressed, so that none is larger than the file."""

    def __init__(self, source: str | Path | io.BytesIO, name: str):
        self.name = name
        try:
            self.zip = zipfile.ZipFile(source)
        # zipfile raises each of these for damaged archives: for bad offsets, and for features that it does not support.
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
            raise Error(f"cannot read {name}: {error}") from None
        listed = self.zip.infolist()
        size = source.getbuffer().nbytes if isinstance(source, io.BytesIO) else Path(source).stat().st_size
        self._require_bounds(listed, size)
        roots = {info.filename.partition("/")[0] for info in listed if "/" in info.filename}
        in_one_folder = len(roots) == 1 and all("/" in info.filename for info in listed)
        root = f"{roots.pop()}/" if in_one_folder else ""
        self.members = {info.filename.removeprefix(root): info for info in listed}

    def __contains__(self, member: str) -> bool:
        return member in self.members

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.zip.close()

    def _require_bounds(self, listed: list[zipfile.ZipInfo], size: int) -> None:
        seen: set[str] = set()
        for info in listed:
            if info.filename in seen:
                self.refuse(info.filename, "occurs twice")
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                self.refuse(info.filename, "is compressed, expected one that is stored uncompressed")
            if info.flag_bits & 1:
                self.refuse(info.filename, "is encrypted")
            seen.add(info.filename)
        if (total := sum(info.file_size for info in listed)) > size:
            raise Error(f"{self.name} unpacks to {total} bytes, expected no more than its size, {size}")

    def refuse(self, member: str, reason: str) -> NoReturn:
        """Raises the error for a member."""
        raise Error(f"{self.name}: the member {member!r} {reason}")

    def read(self, member: str) -> bytearray:
        """Returns the bytes of a member, after checking its checksum."""
        info = self.members.get(member)
        if info is None:
            self.refuse(member, "is missing")
        content = bytearray(info.file_size)
        try:
            with self.zip.open(info) as file:
                filled = 0
                while count := file.readinto(memoryview(content)[filled:]):  # type: ignore[arg-type]
                    filled += count
                file.read(1)  # past the end, where the checksum is compared
        # The same exceptions, and those for members that end early or are encrypted.
        except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
            self.refuse(member, f"is damaged: {error}")
        if filled < info.file_size:
            self.refuse(member, f"is truncated: has {filled} bytes, expected {info.file_size}")
        return content

    def json(self, member: str) -> Json:
        """Returns a member that is JSON."""
        content = self.read(member)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            self.refuse(member, f"is not JSON, or is damaged: {error}")


def read_contents(path: str | Path) -> Contents:
    """Returns the contents of a `.pt2` archive, in the current format or an older one."""
    with Archive(path, str(path)) as archive:
        if "serialized_exported_program.json" in archive:  # up to PyTorch 2.7
            return _older(archive)
        if bytes(archive.read("archive_format")) != b"pt2":
            archive.refuse("archive_format", "is not 'pt2'")
        if (version := bytes(archive.read("archive_version"))) != b"0":
            archive.refuse("archive_version", f"is {version!r}, expected b'0'")
        if "byteorder" in archive and bytes(archive.read("byteorder")) != b"little":
            archive.refuse("byteorder", "is not 'little': big-endian tensors are not supported")
        name = _model_of(archive)
        program = archive.json(f"models/{name}.json")
        return Contents(program, _tensors(archive, "weights", name), _tensors(archive, "constants", name))


def _model_of(archive: Archive) -> str:
    """Returns the name of the archive's program."""
    names = [
        member.removeprefix("models/").removesuffix(".json")
        for member in archive.members
        if member.startswith("models/") and member.endswith(".json")
    ]
    if "model" in names or len(names) == 1:
        return "model" if "model" in names else names[0]
    if not names and any(member.startswith("data/aotinductor/") for member in archive.members):
        raise Error(f"{archive.name} holds machine code (data/aotinductor), which is not run, and no program")
    raise Error(f"{archive.name} holds the programs {', '.join(names) or 'none'}, expected model, or only one")


def _older(archive: Archive) -> Contents:
    version = bytes(archive.read("version"))
    if not version.startswith(b"8."):
        archive.refuse("version", f"is {version!r}, expected 8")
    program = archive.json("serialized_exported_program.json")
    state, constants = (_unpickled(archive, f"serialized_{kind}.pt") for kind in ("state_dict", "constants"))
    return Contents(program, state, constants)


def _tensors(archive: Archive, kind: str, model: str) -> dict[str, torch.Tensor]:
    """Returns the tensors in a folder of the archive: those that share memory there share it here too."""
    folder = f"data/{kind}"
    if f"{folder}/{model}.pt" in archive:  # up to PyTorch 2.9
        return _unpickled(archive, f"{folder}/{model}.pt")
    config = f"{folder}/{model}_{kind}_config.json"
    entries = archive.json(config)
    memories: dict[str, torch.Tensor] = {}
    tensors = {}
    try:
        for name, entry in entries["config"].items():
            member = f"{folder}/{entry['path_name']}"
            if entry["use_pickle"] or entry["tensor_meta"] is None:
                _refuse_pickle(archive, member, name)
            if member not in memories:
                memories[member] = _memory(archive.read(member))
            tensor = _view(memories[member], entry["tensor_meta"])
            tensors[name] = torch.nn.Parameter(tensor, requires_grad=False) if entry["is_param"] else tensor
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        archive.refuse(config, f"is damaged: {type(error).__name__}: {error}")
    return tensors


def _refuse_pickle(archive: Archive, member: str, name: str) -> NoReturn:
    reason = f"({name}) is a pickle, which may run any code when it is loaded"
    archive.refuse(member, f"{reason}; trust=True (--trust) allows it, for files whose origin you trust")


def _memory(content: bytearray) -> torch.Tensor:
    return torch.frombuffer(content, dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)


def _view(memory: torch.Tensor, meta: Json) -> torch.Tensor:
    """Returns a tensor over bytes of the archive."""
    dtype = DTYPES_BY_CODE[meta["dtype"]]
    sizes, strides = ([_number(entry) for entry in meta[name]] for name in ("sizes", "strides"))
    offset = _number(meta["storage_offset"])
    if meta["layout"] != STRIDED or len(sizes) != len(strides):
        raise ValueError(f"has layout {meta['layout']} and strides {strides} for sizes {sizes}")
    count = 1
    for size in sizes:
        count *= size
    held = len(memory) // dtype.itemsize
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if count and last >= held:
        raise ValueError(f"a tensor of sizes {sizes} and strides {strides} needs {last + 1} elements, has {held}")
    require_bounded(count * dtype.itemsize, len(memory))
    whole = memory[: held * dtype.itemsize].view(dtype)
    return whole.as_strided(sizes, strides, offset) if count else torch.empty(sizes, dtype=dtype)


def require_bounded(needed: int, held: int) -> None:
    """Rejects a view that represents far more bytes than there are."""
    if needed > held + MAX_VIEW:
        raise ValueError(f"a tensor represents {needed} bytes, expected at most {MAX_VIEW} more than its {held}")


def _number(entry: Json) -> int:
    number = entry["as_int"]
    if type(number) is not int or not 0 <= number < 1 << 63:
        raise ValueError(f"has {number!r}, expected a size")
    return number


def _unpickled(archive: Archive, member: str) -> dict[str, torch.Tensor]:
    """Returns the tensors of an older archive, which are in a file of `torch.save`: its pickle may only contain what
    PyTorch's restricted reader accepts, which calls nothing except the functions that rebuild tensors."""
    content = io.BytesIO(archive.read(member))
    if not content.getbuffer().nbytes:
        return {}
    with Archive(io.BytesIO(content.getvalue()), f"{archive.name}, {member}"):  # checks its bounds
        pass
    try:
        found = torch.load(content, map_location="cpu", weights_only=True)
    except Exception:  # various types
        _refuse_pickle(archive, member, "with more than tensors")
    if not isinstance(found, dict) or not all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in found.values()):
        archive.refuse(member, "has more than tensors by name")
    for name, tensor in found.items():
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            archive.refuse(member, f"has a tensor {name} that is not dense")
        try:
            require_bounded(tensor.nbytes, tensor.untyped_storage().nbytes())
        except ValueError as error:
            archive.refuse(member, f"has too large a tensor {name}: {error}")
    return found
