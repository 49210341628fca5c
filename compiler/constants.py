"""Where the constants of a program come from: those that the module holds are found by their memory. The optimizer
moves and reshapes constants without a copy; what it computed has memory of its own, and is nobody's reference."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from trivium.compiler.artifact import ModuleConstant
from trivium.ir.func import Module
from trivium.ir.ops import Constant as ConstantOp

if TYPE_CHECKING:
    from trivium.compiler.program import Constant


def constant_arrays(module: Module) -> list[np.ndarray]:
    """The module's constants, by the numbers of references: in the order of its ops."""
    return [op.value.array for op in module.walk() if isinstance(op, ConstantOp)]


class References:
    """The constants of a module, as long as nobody changes it. A program's constant refers to the one of the module in
    whose bytes it lies; or, where that is not dense, to the one whose elements it is a copy of."""

    def __init__(self, module: Module):
        self._copied: dict[tuple[object, ...], int] = {}
        self._dense: list[tuple[int, int, int]] = []
        for number, array in enumerate(constant_arrays(module)):
            if array.flags.c_contiguous and array.nbytes:
                begin = _address(array)
                self._dense.append((begin, begin + array.nbytes, number))
            else:
                self._copied.setdefault(_layout(array), number)
        self._dense.sort()

    def find(self, constant: Constant) -> ModuleConstant | None:
        """The reference to a constant of the module; None for what is not the module's."""
        array = constant.array
        if not array.nbytes:
            return None
        if constant.origin is not None:
            number = self._copied.get(_layout(constant.origin))
            return None if number is None else ModuleConstant(number, 0, array.nbytes)
        begin = _address(array)
        place = bisect_right(self._dense, begin, key=lambda entry: entry[0])
        if place == 0:
            return None
        start, end, number = self._dense[place - 1]
        return ModuleConstant(number, begin - start, array.nbytes) if begin + array.nbytes <= end else None


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _layout(array: np.ndarray) -> tuple[object, ...]:
    return _address(array), array.shape, array.strides, array.dtype
