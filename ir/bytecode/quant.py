"""The types of MLIR's quant dialect in plain bytecode. VHLO has the same form for types per tensor and per axis."""

from __future__ import annotations

from collections.abc import Callable

from trivium.ir.attributes import DenseElements
from trivium.ir.bytecode.stablehlo import refuse
from trivium.ir.bytecode.tables import Dialect, EntryReader
from trivium.ir.bytecode.vhlo_types import read_per_axis, read_per_tensor, read_storage
from trivium.ir.types import QuantizedType, SubChannelType


def _read_sub_channel(reader: EntryReader) -> SubChannelType:
    storage, expressed = read_storage(reader)
    least, most = reader.signed(), reader.signed()
    sizes = tuple(zip(reader.signeds(), reader.signeds(), strict=True))
    scales, zero_points = (reader.expect(reader.attribute(), DenseElements).expanded() for _ in range(2))
    # Both are tensors of the same shape; the zero points there are signless.
    numbers = zero_points.astype(storage.dtype).reshape(-1).tolist()
    return SubChannelType(
        storage, expressed, least, most, sizes, scales.shape, tuple(scales.reshape(-1).tolist()), tuple(numbers)
    )


_TYPES: dict[int, Callable[[EntryReader], QuantizedType]] = {
    4: read_per_tensor,
    5: read_per_axis,
    6: _read_sub_channel,
}

QUANT = Dialect({}, _TYPES, refuse, refuse)
