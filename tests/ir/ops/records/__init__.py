"""Records: uses of ops, each with operands, attributes, and an oracle that computes the expected result. Generic tests
run over all records of all modules in this folder; to test a new op, add a line there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from trivium.ir.builder import Builder, region
from trivium.ir.core import Region, Value
from trivium.ir.declare import Op
from trivium.ir.func import Function, Module
from trivium.ir.types import TensorType, Type, tensor, type_of


@dataclass(frozen=True)
class Record:
    """One use of an op.

    `operands` are arrays, or tuples of arrays where the op takes lists. An attribute that is a function returns a new
    region at each call. `result` is the type of a result that does not follow from the operands. `oracle` takes the
    arrays and returns the expected one (or a tuple of them); `ulps` is the error allowed, in units in the last place.
    `types` are those of the operands, for types that have no dtype.
    """

    op: type[Op]
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    result: TensorType | None = None
    oracle: Callable[..., Any] | None = None
    ulps: int = 0
    types: tuple[Type, ...] = ()

    def __str__(self) -> str:
        kinds = "-".join(str(kind)[7:-1] for kind in self.types or map(type_of, self.arrays))
        return f"{self.op.short_name()}-{kinds or self.result}"

    @property
    def arrays(self) -> list[np.ndarray]:
        """Returns the operands as a flat list."""
        return [array for operand in self.operands for array in (operand if isinstance(operand, tuple) else (operand,))]

    def add(self, builder: Builder, arguments: Sequence[Value]) -> Any:
        """Adds the op to a program, with these values as its operands."""
        values: Iterator[Value] = iter(arguments)
        grouped = [
            [next(values) for _ in operand] if isinstance(operand, tuple) else next(values) for operand in self.operands
        ]
        named = {name: value() if callable(value) else value for name, value in self.attributes.items()}
        if self.result is not None:
            named["result"] = self.result
        return builder.add(self.op(*grouped, **named))

    def module(self) -> Module:
        """Returns a program of one function that contains only this op."""
        types = self.types or [type_of(array) for array in self.arrays]
        return Module.build(functions=[Function.build("main", types, lambda builder, *given: self.add(builder, given))])


def collect() -> list[Record]:
    """Returns the records of every module of this folder."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [record for module in modules for record in module.RECORDS]


def body(op: type[Op], *elements: Type) -> Callable[[], Region]:
    """Returns a region of scalars that applies one op to its arguments."""
    scalars = [tensor(of=element) for element in elements]
    return lambda: region(scalars, lambda builder, *arguments: builder.add(op(*arguments)))


# Oracles


def rounded(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Returns an oracle that computes the function in 64 bits, and rounds once to the dtype of its first operand."""

    def oracle(*arrays: np.ndarray) -> np.ndarray:
        wide = [array.astype(np.complex128 if np.iscomplexobj(array) else np.float64) for array in arrays]
        with np.errstate(all="ignore"):
            return np.asarray(function(*wide)).astype(arrays[0].dtype)

    return oracle


def exact(function: Callable[..., int], dtype: Any = None) -> Callable[..., np.ndarray]:
    """Returns an oracle that computes with Python's integers, one element at a time, and wraps the results to a dtype:
    by default, that of the first operand."""

    def oracle(*arrays: np.ndarray) -> np.ndarray:
        target = np.dtype(dtype or arrays[0].dtype)
        limits = ml_dtypes.iinfo(target)
        count, least = int(limits.max) - int(limits.min) + 1, int(limits.min)
        rows = zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)
        values = [(function(*map(int, row)) - least) % count + least for row in rows]
        return np.array(values, np.uint64 if least == 0 else np.int64).astype(target).reshape(arrays[0].shape)

    return oracle


class Lax:
    """Returns a function of `jax.lax` as an oracle; its tests need JAX."""

    def __init__(self, name: str, **parameters: Any):
        self.name = name
        self.parameters = parameters

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        import jax

        with jax.enable_x64(True):
            return np.asarray(getattr(jax.lax, self.name)(*arrays, **self.parameters))
