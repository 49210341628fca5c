"""Modules in parts: together they are the same program, with the same machine code."""

from __future__ import annotations

import ctypes
import re

import llvmlite.ir as ll
import pytest

from tests.backends.llvm.running import Loaded
from trivium.backends.cpu.jit import Compilation, compile_module, parsed
from trivium.backends.cpu.target import host
from trivium.backends.llvm import elf
from trivium.backends.llvm.split_module import Parts

I32 = ll.IntType(32)
POINTER = ll.PointerType()


def example() -> ll.Module:
    """A module in which three functions use what others define: a table, a function by call and one by address."""
    module = ll.Module("example")
    module.triple = host().triple
    table = ll.GlobalVariable(module, ll.ArrayType(I32, 4), "some table")
    table.initializer, table.linkage, table.global_constant = (
        ll.Constant(table.value_type, [1, 2, 4, 8]),
        "internal",
        True,
    )
    outside = ll.Function(module, ll.FunctionType(I32, [I32]), "abs")
    element = ll.Function(module, ll.FunctionType(I32, [ll.IntType(64)]), "element internal to the module")
    element.linkage = "internal"
    builder = ll.IRBuilder(element.append_basic_block())
    place = builder.gep(table, [ll.IntType(64)(0), element.args[0]], source_etype=table.value_type)
    builder.ret(builder.load(place, typ=I32))
    negative = ll.Function(module, ll.FunctionType(I32, [I32]), "negative")
    negative.linkage = "internal"
    builder = ll.IRBuilder(negative.append_basic_block())
    builder.ret(builder.neg(negative.args[0]))
    entry = ll.Function(module, ll.FunctionType(I32, [ll.IntType(64), POINTER]), "entry")
    builder = ll.IRBuilder(entry.append_basic_block())
    builder.store(negative, entry.args[1])
    builder.ret(builder.call(outside, [builder.call(negative, [builder.call(element, [entry.args[0]])])]))
    return module


def sizes(shared_object: bytes) -> dict[str, int]:
    """The bytes of each symbol's code or data."""
    content = elf.read_object(shared_object[:16] + elf.ET_REL.to_bytes(2, "little") + shared_object[18:])
    return {symbol.name: symbol.size for symbol in content.symbols if symbol.size}


def split(module: ll.Module, size: int) -> list[str]:
    return list(Parts(size).rest(module))


def linked(texts: list[str]) -> bytes:
    with Compilation(host()) as compilation:
        return compilation.finish(texts)


@pytest.mark.parametrize(("size", "parts"), [(1, 4), (150, 2), (100_000, 1)])
def test_parts_are_the_same_program(size: int, parts: int) -> None:
    texts = split(example(), size)
    assert len(texts) == parts
    shared = linked(texts)
    assert sizes(shared) == sizes(compile_module(str(example()), host()))
    code = Loaded(shared)
    negative = ctypes.c_void_p()
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)(code.address("entry"))
    assert [entry(i, ctypes.addressof(negative)) for i in range(4)] == [1, 2, 4, 8]
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(negative.value or 0)(5) == -5


def test_parts_are_taken_while_the_module_grows() -> None:
    """A function that is only declared at first is defined in the part that is complete after it has a body."""
    module, parts = example(), Parts(1)
    first = list(parts.take(module))
    assert len(first) == 3
    absolute = module.globals["abs"]
    absolute.linkage = "internal"
    builder = ll.IRBuilder(absolute.append_basic_block())
    negative = builder.call(module.globals["negative"], absolute.args)
    is_less = builder.icmp_signed("<", *absolute.args, negative)
    builder.ret(builder.select(is_less, negative, *absolute.args))
    second = list(parts.rest(module))
    assert len(second) == 2
    assert 'declare hidden i32 @"abs"' in second[0]
    assert 'define hidden i32 @"abs"' in second[1]
    code = Loaded(linked([*first, *second]))
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)(code.address("entry"))
    assert [entry(i, ctypes.addressof(ctypes.c_void_p())) for i in range(4)] == [1, 2, 4, 8]


def test_every_part_is_a_module_of_its_own() -> None:
    """It is valid, declares what it refers to and nothing else, and hides what was internal."""
    texts = split(example(), 1)
    for text in texts:
        with parsed(text):
            pass
    declared = [re.findall(r'^declare \S+ (?:\S+ )?(@"[^"]*")', text, re.MULTILINE) for text in texts]
    assert declared == [[], [], [], ['@"negative"', '@"element internal to the module"', '@"abs"']]
    assert '@"some table" = external hidden constant [4 x i32]' in texts[1]
    assert 'define hidden i32 @"element internal to the module"' in texts[1]
    assert "internal constant" in split(example(), 100_000)[0]


def test_hidden_symbols_are_not_exported() -> None:
    code = Loaded(linked(split(example(), 1)))
    assert code.address("entry")
    for name in ("negative", "some table", "element internal to the module"):
        with pytest.raises(AttributeError, match="has no function"):
            code.address(name)
