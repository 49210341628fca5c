"""The location of the kernels' scratch memory: small buffers are on the stack of the thread, all others in the
workspace, which every run has for itself after its arena. Its size is known when the program is compiled, so that a run
allocates nothing. Each thread that takes part in a loop has its own buffers."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.llvm.code import I8, I64, stack_slot

STACK_LIMIT = 32 * 1024
"""The maximal number of bytes of stack for the buffers of one function: threads that others created may have little of
it."""

ALIGNMENT = 64
"""The alignment of a buffer: the cache line of most processors."""


class WorkspaceSize:
    """The bytes of workspace that a kernel needs, for the code emitted so far. Up to `stack_limit` bytes of its buffers
    are on the stack."""

    def __init__(self, stack_limit: int = STACK_LIMIT) -> None:
        self.nbytes = 0
        self.stack_limit = stack_limit


class Workspace:
    """The workspace as seen by one function: `pointer` is its start. If several threads run the function,
    `participants` is their number, and `participant` the number of the one that runs it."""

    def __init__(
        self, pointer: ll.Value, size: WorkspaceSize, participants: int = 1, participant: ll.Value | None = None
    ) -> None:
        self.pointer, self._size = pointer, size
        self._participants, self._participant = participants, participant
        self._stack = 0

    def shared(self, pointer: ll.Value, participants: int, participant: ll.Value) -> Workspace:
        """Returns the same workspace in a function that several threads run."""
        return Workspace(pointer, self._size, participants, participant)

    def room(self, builder: ll.IRBuilder, nbytes: int) -> ll.Value:
        """Returns memory that belongs to the function until it returns, aligned to `ALIGNMENT` bytes."""
        nbytes = -(-max(1, nbytes) // ALIGNMENT) * ALIGNMENT
        if self._stack + nbytes <= self._size.stack_limit:
            self._stack += nbytes
            return stack_slot(builder, ll.ArrayType(I8, nbytes), align=ALIGNMENT)
        offset: ll.Value = I64(self._size.nbytes)
        self._size.nbytes += nbytes * self._participants
        with builder.goto_entry_block():
            if self._participant is not None:
                offset = builder.add(offset, builder.mul(self._participant, I64(nbytes)))
            return builder.gep(self.pointer, [offset], source_etype=I8)
