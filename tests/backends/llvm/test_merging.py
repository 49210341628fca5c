"""Object files joined to one. Those that this machine can run are run in `test_split_module.py`."""

from __future__ import annotations

import pytest

from tests.backends.llvm.test_shared_object import TRIPLES, object_file
from tests.backends.llvm.test_shared_object import _targets as _targets
from trivium.backends.llvm import elf
from trivium.backends.llvm.merging import merge
from trivium.ir.errors import CompileError

CALLS = "declare void @g()\ndeclare void @h()\ndefine void @f() {\ncall void @g()\ncall void @h()\nret void\n}"
DEFINES = "declare void @h()\ndefine hidden void @g() {\ncall void @h()\nret void\n}"


def merged(*texts: str, triples: tuple[str, ...] = TRIPLES[:1]) -> elf.Object:
    return merge([elf.read_object(object_file(text, triple)) for text in texts for triple in triples])


@pytest.mark.parametrize("triple", TRIPLES)
def test_names_are_resolved(triple: str) -> None:
    """Both calls of `h` are for one symbol, and the call of `g` is for its definition, which is local now."""
    joined = merged(CALLS, DEFINES, triples=(triple,))
    meant = [joined.symbols[row["symbol"]] for rows in joined.relocations.values() for row in rows]
    called = [symbol for symbol in meant if symbol.name in "gh" and symbol.name]
    assert [(s.name, s.section == elf.SHN_UNDEF, s.binding) for s in called] == [
        ("g", False, elf.STB_LOCAL), ("h", True, elf.STB_GLOBAL), ("h", True, elf.STB_GLOBAL),
    ]  # fmt: skip
    assert len({id(symbol) for symbol in called}) == 2
    assert [joined.sections[s.section].name for s in meant if s.name == "g"] == [".text"]


def test_one_file_keeps_its_numbers() -> None:
    alone = elf.read_object(object_file(CALLS, TRIPLES[0]))
    joined = merge([alone])
    assert (joined.sections, joined.symbols) == (alone.sections, alone.symbols)
    assert {section: rows.tolist() for section, rows in joined.relocations.items()} == {
        section: rows.tolist() for section, rows in alone.relocations.items()
    }


def test_two_definitions_of_a_name() -> None:
    with pytest.raises(CompileError, match="g is defined in two object files"):
        merged(DEFINES, DEFINES)


def test_files_for_two_machines() -> None:
    with pytest.raises(CompileError, match="object files for 2 machines cannot be linked"):
        merged(DEFINES, triples=TRIPLES)
