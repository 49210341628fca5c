"""The result of a compilation: machine code and everything needed to run it, as data. A backend makes an artifact from
a program and an executable from an artifact. The cache keeps artifacts, so that a second process only has to load one.
Constants of the module are stored as references, with the packing to apply to them; only constants that the compiler
itself made are embedded. `whole` artifacts embed everything and need no module."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.ir.errors import Error
from trivium.ir.types import TensorType, tensor

COSTS = "flops", "transcendentals", "bytes accessed"

AVOIDABLE = "avoidable flops"
"""Those of the flops that a program for several sizes does not take for smaller ones."""
"""The costs of a run under PJRT's names, which are also their names in an artifact's texts."""


@dataclass(frozen=True)
class Slot:
    """The NumPy type and shape of an argument or result."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def type(self) -> TensorType:
        """The equivalent type of the language."""
        return tensor(*self.shape, of=self.dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class NativeFunction:
    """A function of the native runtime that a program calls, and the name of the LAPACK or BLAS routine that is passed
    to it; empty if there is none."""

    function: str
    routine: str = ""


@dataclass(frozen=True)
class PythonFunction:
    """A custom call that the user registered under the name `target`; `program` is the text of a module whose entry
    function has only that op."""

    target: str
    program: str


@dataclass(frozen=True)
class Axis:
    """A number of steps through memory, and their stride in elements."""

    extent: int
    stride: int


@dataclass(frozen=True)
class Packing:
    """How the constant operand of a contraction is rearranged. It is read from element `offset` on, as [batch, columns,
    reduction], each the product of several axes, and written as [batch][panel][reduction][column of the panel]. The
    panels have `widths` in elements, and are filled up with zeros where there are fewer columns."""

    itemsize: int
    offset: int
    batch: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduction: tuple[Axis, ...]
    widths: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The size of the packed form."""
        lines = math.prod(axis.extent for axis in (*self.batch, *self.reduction))
        return self.itemsize * lines * sum(self.widths)

    @property
    def reach(self) -> range:
        """The range that contains all elements that are read."""
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
    """`nbytes` bytes of the module's constant number `index`, from byte `offset` of its dense row-major form."""

    index: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class ConstantData:
    """A constant as a program reads it: `source`, packed if there is a `packing`."""

    source: Embedded | ModuleConstant
    packing: Packing | None = None

    @property
    def nbytes(self) -> int:
        """The size in the form that the program reads."""
        return self.source.nbytes if self.packing is None else self.packing.nbytes


@dataclass(frozen=True)
class Machine:
    """The machine that machine code was made for. `features`: LLVM's names, such as "+avx2,-avx512f"; those with a plus
    are required."""

    triple: str
    cpu: str
    features: str

    @property
    def needs(self) -> frozenset[str]:
        """The features that a processor must have."""
        return frozenset(name[1:] for name in self.features.split(",") if name.startswith("+"))


@dataclass(frozen=True)
class Artifact:
    """A compiled program. `runtime` is the version of the native runtime that the code calls, `producer` names the
    software that made the code. `texts` describes the program, by name: `signature`, `schedules`, `origins`, and in a
    whole artifact also the stages."""

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
        """The bytes of all constants, in the form that the program reads."""
        return sum(constant.nbytes for constant in self.constants)

    @property
    def is_whole(self) -> bool:
        """Whether it can be loaded without the module that it was made from."""
        return all(isinstance(constant.source, Embedded) for constant in self.constants)


def lacking(needed: Machine, present: Machine) -> Sequence[str]:
    """Returns the reasons why code for machine `needed` does not run on machine `present`; empty if it does."""
    return list(_lacking(needed, present))


def _lacking(needed: Machine, present: Machine) -> Iterator[str]:
    if needed.triple != present.triple:
        yield f"{needed.triple} is not {present.triple}"
    missing = sorted(needed.needs - present.needs)
    if missing:
        yield f"{present.cpu} has no {', '.join(missing)}"


def require_machine(artifact: Artifact, present: Machine) -> None:
    """Raises an Error that names both machines if the artifact's code does not run on `present`."""
    reasons = lacking(artifact.machine, present)
    if reasons:
        needed = artifact.machine
        raise Error(
            f"{artifact.name} was compiled for {needed.cpu} ({needed.triple}), and this machine is {present.cpu} "
            f"({present.triple}): {'; '.join(reasons)}"
        )
