"""What a compilation gives: machine code and all that running it takes, as data. A backend makes an artifact from a
program and an executable from an artifact; the cache keeps artifacts, so that a second process does neither more nor
less than load one. Constants that the module holds are references to them, with what to do to them; only what the
compiler made itself is embedded. `whole` artifacts embed everything, and need no module."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.ir.errors import Error
from trivium.ir.types import TensorType, tensor

COSTS = "flops", "transcendentals", "bytes accessed"
"""What a run does, under PJRT's names, which are also those of an artifact's texts."""


@dataclass(frozen=True)
class Slot:
    """An argument or result: what NumPy type and shape it has."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def type(self) -> TensorType:
        """The same in the language's terms."""
        return tensor(*self.shape, of=self.dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class NativeFunction:
    """A function of the native runtime that a program calls, and the name of the LAPACK or BLAS routine that it is
    given; empty for none."""

    function: str
    routine: str = ""


@dataclass(frozen=True)
class PythonFunction:
    """A custom call that the user registered under the name `target`; `program` is the text of a module whose entry is
    that one op."""

    target: str
    program: str


@dataclass(frozen=True)
class Axis:
    """Steps through memory, in elements."""

    extent: int
    stride: int


@dataclass(frozen=True)
class Packing:
    """How the constant operand of a contraction is rearranged: read as [batch, columns, reduction], each the product
    of several axes, from element `offset` on; written as [batch][panel][reduction][column of the panel], with zeros
    where there are fewer columns than the panels have (`widths`, in elements)."""

    itemsize: int
    offset: int
    batch: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduction: tuple[Axis, ...]
    widths: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Of the packed form."""
        lines = math.prod(axis.extent for axis in (*self.batch, *self.reduction))
        return self.itemsize * lines * sum(self.widths)

    @property
    def reach(self) -> range:
        """The elements that are read lie within this range."""
        steps = [(axis.extent - 1) * axis.stride for axis in (*self.batch, *self.columns, *self.reduction)]
        return range(self.offset + sum(min(0, step) for step in steps), self.offset + sum(max(0, s) for s in steps) + 1)


@dataclass(frozen=True, eq=False)
class Embedded:
    """Bytes that the artifact holds."""

    data: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


@dataclass(frozen=True)
class ModuleConstant:
    """`nbytes` of the module's constant number `index`, seen as dense and row-major, from byte `offset` on."""

    index: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class ConstantData:
    """A constant as a program reads it: `source`, packed where there is a `packing`."""

    source: Embedded | ModuleConstant
    packing: Packing | None = None

    @property
    def nbytes(self) -> int:
        """As the program reads it."""
        return self.source.nbytes if self.packing is None else self.packing.nbytes


@dataclass(frozen=True)
class Machine:
    """What machine code was made for. `features`: LLVM's names, "+avx2,-avx512f"; those with a plus are needed."""

    triple: str
    cpu: str
    features: str

    @property
    def needs(self) -> frozenset[str]:
        """The features that a processor must have."""
        return frozenset(name[1:] for name in self.features.split(",") if name.startswith("+"))


@dataclass(frozen=True)
class Artifact:
    """A compiled program. `runtime` is the version of the native runtime that the code calls, `producer` names what
    made the code. `texts` is about the program, by name: `signature`, `schedules`, `origins`, and in a whole artifact
    also stages."""

    name: str
    machine: Machine
    runtime: int
    threads: int
    producer: str
    code: bytes
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    arena_size: int
    arena_alignment: int
    host_functions: tuple[NativeFunction | PythonFunction, ...] = ()
    constants: tuple[ConstantData, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def constant_size(self) -> int:
        """Bytes of all constants, as the program reads them."""
        return sum(constant.nbytes for constant in self.constants)

    @property
    def is_whole(self) -> bool:
        """Whether it can be loaded without the module that it was made of."""
        return all(isinstance(constant.source, Embedded) for constant in self.constants)


def lacking(needed: Machine, present: Machine) -> Sequence[str]:
    """Why code for the one machine does not run on the other; empty where it does."""
    return list(_lacking(needed, present))


def _lacking(needed: Machine, present: Machine) -> Iterator[str]:
    if needed.triple != present.triple:
        yield f"{needed.triple} is not {present.triple}"
    missing = sorted(needed.needs - present.needs)
    if missing:
        yield f"{present.cpu} has no {', '.join(missing)}"


def require_machine(artifact: Artifact, present: Machine) -> None:
    """Raises an Error that names both machines, where the artifact's code does not run on the one that is present."""
    reasons = lacking(artifact.machine, present)
    if reasons:
        needed = artifact.machine
        raise Error(
            f"{artifact.name} was compiled for {needed.cpu} ({needed.triple}), and this machine is {present.cpu} "
            f"({present.triple}): {'; '.join(reasons)}"
        )
