"""The changes between the versions of StableHLO's portable artifacts: one table of facts, separate from the op classes.
An op of a file has a revision, the number after its name (`vhlo.gather_v2`); a new revision adds attributes, or lets an
op do more. When an older revision is read, the added attributes get the values that it implies; when one is written,
they must have these values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trivium.ir.attributes import Attribute, DenseArray, integer_array
from trivium.ir.codecs import Pairs, codec_of
from trivium.ir.core import Operation
from trivium.ir.errors import Error
from trivium.ir.ops.transcendental import ResultAccuracy
from trivium.ir.types import I64, NONE, FutureType


class Version(NamedTuple):
    """A version of StableHLO: `1.9.0`."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def of(cls, text: str) -> Version:
        """Reads a version such as `1.9.0`, or raises an `Error`."""
        match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", text) if isinstance(text, str) else None
        if match is None:
            raise Error(f"the version is {text!r}, expected three numbers, as in '1.9.0'")
        return cls(*map(int, match.groups()))


FIRST = Version(0, 9)
"""The oldest version that files can have."""
STABLE = Version(1, 0)
"""The lowest version that is written by default."""
CURRENT = Version(1, 20)
"""The newest known version."""

_BYTECODE = ((Version(0, 10), 0), (Version(0, 12), 1), (Version(0, 14), 3), (Version(0, 15), 4))


def bytecode_version(version: Version) -> int:
    """Returns the version of MLIR's bytecode format that belongs to a version of StableHLO."""
    return next((number for before, number in _BYTECODE if version < before), 6)


def supported(version: Version) -> Version:
    """Returns the version if a file of it can be written, otherwise raises an `Error`. Patch versions are ignored."""
    if version < FIRST or version[:2] > CURRENT[:2]:
        raise Error(f"the version is {version}, expected one from {FIRST} to {CURRENT}")
    return version


@dataclass(frozen=True)
class Revision:
    """The changes in a revision of an op. Before version `since`, the attributes in `added` could only have the values
    given here, those in `removed` existed too (computed from the others), and `demands`, a named test, had to be true.
    """

    since: Version
    added: Mapping[str, Attribute] = field(default_factory=dict)
    removed: Mapping[str, Callable[[Mapping[str, Attribute]], Attribute]] = field(default_factory=dict)
    demands: tuple[str, Callable[[Operation], bool]] | None = None


def _no_padding(attributes: Mapping[str, Attribute]) -> Attribute:
    spatial = attributes["input_spatial_dimensions"]
    assert isinstance(spatial, DenseArray), spatial
    return codec_of(Pairs).encode(((0, 0),) * len(spatial.values))


_NO_INDICES = NO_PAIRS = integer_array((), I64)
_ONE_OPERAND = ("one operand only", lambda op: len(op.operands) == 1)
_ALGORITHM = (
    *("lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count", "rhs_component_count"),
    *("num_primitive_operations", "allow_imprecise_accumulation"),
)
_ACCURACY = {"result_accuracy": ResultAccuracy()}
_ACCURATE_SINCE_1_10 = (
    *("cbrt", "cosine", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "sqrt", "tan"),
    "tanh",
)

REVISIONS: dict[str, Revision] = {
    "all_gather": Revision(Version(1, 5), demands=_ONE_OPERAND),
    "all_reduce": Revision(Version(1, 5), demands=_ONE_OPERAND),
    "all_to_all": Revision(Version(1, 5), demands=_ONE_OPERAND),
    "collective_broadcast": Revision(Version(1, 20), added={"has_dynamic_root": False}, demands=_ONE_OPERAND),
    "composite": Revision(Version(1, 14), demands=("no regions", lambda op: not op.regions)),
    "custom_call": Revision(Version(1, 18), added={"result_tilings": ()}),
    "dot_general": Revision(Version(1, 6), added=dict.fromkeys(_ALGORITHM, NONE)),
    "dynamic_conv": Revision(Version(0, 20), removed={"padding": _no_padding}),
    "dynamic_gather": Revision(
        Version(1, 1), added=dict.fromkeys(("operand_batching_dims", "start_indices_batching_dims"), _NO_INDICES)
    ),
    "exponential": Revision(Version(1, 9), added=_ACCURACY),
    "gather": Revision(
        Version(1, 1), added=dict.fromkeys(("operand_batching_dims", "start_indices_batching_dims"), _NO_INDICES)
    ),
    "recv": Revision(Version(1, 12), added={"source_target_pairs": NO_PAIRS}),
    "scatter": Revision(
        Version(1, 1), added=dict.fromkeys(("input_batching_dims", "scatter_indices_batching_dims"), _NO_INDICES)
    ),
    "send": Revision(Version(1, 12), added={"source_target_pairs": NO_PAIRS}),
    **{name: Revision(Version(1, 10), added=_ACCURACY) for name in _ACCURATE_SINCE_1_10},
}
"""The second revision of the ops that have one; none has a third yet."""

INTRODUCED: dict[str, Version] = {
    "async_done": Version(1, 15),
    "async_start": Version(1, 15),
    "collective_broadcast": Version(0, 16),
    "collective_reduce": Version(1, 19),
    "composite": Version(0, 19),
    "tan": Version(1, 4),
}
"""The ops that were added after the first version."""

TYPES: dict[str, Version] = {
    "f8E4M3FNUZ": Version(0, 10),
    "f8E5M2FNUZ": Version(0, 10),
    "f8E4M3B11FNUZ": Version(0, 11),
    "i2": Version(1, 2),
    "ui2": Version(1, 2),
    "none": Version(1, 6),
    "tf32": Version(1, 6),
    "f8E3M4": Version(1, 7),
    "f8E4M3": Version(1, 7),
    "f4E2M1FN": Version(1, 8),
    "f6E2M3FN": Version(1, 8),
    "f6E3M2FN": Version(1, 8),
    "f8E8M0FNU": Version(1, 8),
    "per axis": Version(0, 18),
    "buffer": Version(1, 13),
    "future": Version(1, 15),
}
"""The types that were added after the first version, by name, or by the name of their kind."""

RESULT_ACCURACY = Version(1, 9)
"""The attribute of that name."""
FILE_RANGES = Version(1, 9)
"""Locations that are ranges in a file; older readers know only where those begin."""
MESH_GROUPS = Version(1, 16)
"""Groups of replicas along axes of a mesh."""
OTHER_DIALECTS = Version(1, 11)
"""Attributes of dialects other than StableHLO."""

_PROMOTING = ("all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter")


def _promotes(op: Operation, attributes: Mapping[str, Attribute]) -> bool:
    """Whether a reduction computes in an element type other than that of its operands."""
    pairs = zip(op.operand_types, op.result_types, strict=False)
    return any(
        getattr(mine, "element_type", mine) is not getattr(theirs, "element_type", theirs) for mine, theirs in pairs
    )


def _is_typed_call(op: Operation, attributes: Mapping[str, Any]) -> bool:
    return isinstance(attributes["backend_config"], Mapping) or attributes["api_version"].value == 4


def _takes_future(op: Operation, attributes: Mapping[str, Attribute]) -> bool:
    return any(isinstance(kind, FutureType) for kind in op.operand_types)


USES: dict[str, tuple[tuple[Version, str, Callable[[Operation, Mapping[str, Any]], bool]], ...]] = {
    **{name: ((Version(0, 17), "an element type other than its operands'", _promotes),) for name in _PROMOTING},
    "custom_call": (
        (Version(1, 3), "a dictionary as backend_config, or the typed FFI", _is_typed_call),
        (Version(1, 17), "a future as an operand", _takes_future),
    ),
}
"""Uses of an op that were added later than the op, without a new revision."""
