"""Where the constants of a program come from: constants of the module are recognized by their memory addresses. The
optimizer moves and reshapes constants without copying; constants that it computed have their own memory, and do not
refer to the module."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from trivium.compiler.artifact import ModuleConstant
from trivium.ir.arrays import is_unchanging
from trivium.ir.attributes import DenseElements
from trivium.ir.func import Module
from trivium.ir.ops import Constant as ConstantOp

if TYPE_CHECKING:
    from trivium.compiler.program import Constant


def constant_arrays(module: Module) -> list[np.ndarray]:
    """Returns the module's constants in the order of its ops, which is the numbering that references use."""
    return [op.value.array for op in module.walk() if isinstance(op, ConstantOp)]


def keep_constants(module: Module) -> None:
    """Gives the constants of a module memory of their own where somebody else can write to it, as a framework can to
    its weights. So all programs that are compiled from the module, at whatever time, have the same constants, and may
    share what they make of them."""
    own: dict[int, DenseElements] = {}
    for op in module.walk():
        if isinstance(op, ConstantOp) and not op.value.is_splat and not is_unchanging(op.value.array):
            elements = op.value
            if id(elements) not in own:
                copy = elements.array.copy()
                copy.flags.writeable = False
                own[id(elements)] = DenseElements(copy, elements.type, elements.resource)
            op.attributes["value"] = own[id(elements)]


class References:
    """The constants of a module, valid as long as it does not change. A program's constant refers to the constant of
    the module whose bytes contain it; or, if that one is not dense, to the one whose elements were copied."""

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
        """Returns the reference to a constant of the module; None if the constant is not the module's."""
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
