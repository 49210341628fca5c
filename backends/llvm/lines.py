"""The lines of the kernels' text that LLVM's instructions come from, as debug information, which survives LLVM's
optimizer: so assembly names them, too. Only programs that are shown have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import llvmlite.ir as ll

from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Instruction, walk

Lines = Mapping[Instruction, int]
"""The number of the line that an instruction of a kernel has in a text of several kernels, from 1 on."""


class LinedModule(ll.Module):
    """A module whose instructions have lines."""

    def __init__(self, name: str, lines: Lines) -> None:
        super().__init__(name)
        self.lines = lines
        self._file = self.add_debug_info("DIFile", {"filename": "kernels", "directory": ""})
        self._unit = self.add_debug_info(
            "DICompileUnit",
            {
                "language": ll.DIToken("DW_LANG_C99"),
                "file": self._file,
                "isOptimized": True,
                "emissionKind": ll.DIToken("DebugDirectivesOnly"),
            },
            is_distinct=True,
        )
        self.add_named_metadata("llvm.dbg.cu", self._unit)
        self.add_named_metadata("llvm.module.flags", [ll.IntType(32)(2), "Debug Info Version", ll.IntType(32)(3)])
        self._functions: dict[ll.Function, ll.DIValue] = {}
        self._places: dict[tuple[ll.Function, int], ll.DIValue] = {}

    def place(self, function: ll.Function, line: int) -> ll.DIValue:
        """Returns a line as the location of instructions of a function."""
        if function not in self._functions:
            unit = {"file": self._file, "unit": self._unit, "spFlags": ll.DIToken("DISPFlagDefinition")}
            found = self.add_debug_info("DISubprogram", {"name": function.name, **unit}, is_distinct=True)
            self._functions[function] = found
            function.set_metadata("dbg", found)
        if (function, line) not in self._places:
            fields = {"line": line, "scope": self._functions[function]}
            self._places[function, line] = self.add_debug_info("DILocation", fields)
        return self._places[function, line]

    def complete(self, kernel: Kernel, functions: list[ll.Function]) -> None:
        """Gives what has no line in the functions of a kernel that of its first loop, or, if a template may compute
        it, of its first reduction."""
        every = list(walk(kernel.body))
        templated = kernel.contraction is not None or kernel.attention is not None
        sums = [i for i in every if templated and getattr(i, "kind", "") == "reduction"]
        first = sums or [i for i in every if i.blocks] or every
        line = next((self.lines[instruction] for instruction in first if instruction in self.lines), 0)
        for function in functions:
            for instruction in (i for block in function.blocks for i in block.instructions):
                instruction.metadata.setdefault("dbg", self.place(function, line))


@contextmanager
def at_line(builder: ll.IRBuilder, instruction: Instruction) -> Iterator[None]:
    """Gives what is emitted inside the line of an instruction, if the module has lines."""
    module, outer = builder.module, builder.debug_metadata
    if isinstance(module, LinedModule):
        possible = (instruction, instruction.copied or instruction)
        written = [each for each in possible if each in module.lines]
        if written:
            builder.debug_metadata = module.place(builder.function, module.lines[written[0]])
    try:
        yield
    finally:
        builder.debug_metadata = outer
