"""The mark of a kernel expressed as a problem: what a backend's template needs to know about a contraction and its
epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, Problem, dimension
from trivium.compiler.kernel import contraction as mark
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.index import Index, constant, variable
from trivium.compiler.kernel.structure import Register, Store


class Marked:
    """A kernel's contraction expressed as a problem: an axis for each loop, and how the epilogue uses them."""

    def __init__(self, contraction: mark.Contraction) -> None:
        self.contraction, self.epilogue = contraction, contraction.epilogue
        self.axes = [Axis(loop.extent) for loop in contraction.loops]
        self.analysis = Analysis(contraction.epilogue)

    @cached_property
    def parameters(self) -> dict[Axis, Register]:
        """The epilogue's index parameters."""
        outer = [axis for axis, loop in zip(self.axes, self.contraction.loops, strict=True) if loop.role != "k"]
        return dict(zip(outer, self.epilogue.parameters[1:], strict=True))

    @cached_property
    def problem(self) -> Problem:
        batch, rows, columns, reduction = (
            AxisGroup(tuple(self.axes[i] for i in self.contraction.positions(role)))
            for role in ("batch", "m", "n", "k")
        )
        lhs, rhs = self._access(self.contraction.lhs), self._access(self.contraction.rhs)
        return Problem(batch, rows, columns, reduction, lhs, rhs, self._result())

    def _access(self, operand: mark.Access) -> Access:
        axes = {loop: variable(axis) for loop, axis in zip(self.contraction.loops, self.axes, strict=True)}
        access = Access(constant(operand.buffer.offset))
        dimensions = zip(operand.subscripts, operand.buffer.shape, operand.buffer.layout, strict=True)
        for subscript, size, stride in dimensions:
            position = subscript.position.replace(axes.get)  # type: ignore[arg-type]
            access = dimension(access, size, stride, position, subscript.dilation)
        return access

    def _result(self) -> Access:
        """Returns how the epilogue stores its result; if there are several, the first one decides."""
        store = next(access for access in accesses(self.epilogue) if isinstance(access, Store))
        terms = self.analysis.address(store.buffer, store.indices).terms
        return Access(Index({axis: terms.get(value, 0) for axis, value in self.parameters.items()}))

    def is_flat(self, axes: Sequence[Axis]) -> bool:
        """Whether the epilogue can treat several axes as one: each address moves by a constant step along them, and the
        indices are used in addresses only, not as numbers."""
        inner, run = axes[-1], axes[-1].extent
        if any(self.parameters[axis] in self.analysis.escaping for axis in axes):
            return False
        forms = [self.analysis.address(a.buffer, a.indices).terms for a in accesses(self.epilogue)]
        for axis in reversed(axes[:-1]):
            if any(form.get(self.parameters[axis], 0) != run * form.get(self.parameters[inner], 0) for form in forms):
                return False
            run *= axis.extent
        return True

    @property
    def only_stores(self) -> bool:
        """Whether the epilogue does nothing but store the sum."""
        return len([i for i in self.epilogue.instructions if not self.analysis.is_index(i)]) == 1
