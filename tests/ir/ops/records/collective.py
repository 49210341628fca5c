"""Collectives and process numbers in a single process. `tests/ir/test_parallel.py` runs them in several."""

from __future__ import annotations

import numpy as np

from tests.ir.ops.records import Record, body
from tests.ir.ops.records.indexing import GRID
from trivium.ir import ops
from trivium.ir.types import F32, tensor

ALONE = {"replica_groups": ((0,),)}
ADD = {"computation": body(ops.Add, F32, F32)}


def same(grid):
    return grid


GRIDS = {"results": [tensor(4, 5)]}

RECORDS = [
    Record(ops.AllGather, ((GRID,),), ALONE | GRIDS | {"all_gather_dim": 1}, oracle=same),
    Record(ops.AllReduce, ((GRID,),), ALONE | ADD, oracle=same),
    Record(ops.ReduceScatter, (GRID,), ALONE | ADD | {"scatter_dimension": 0}, tensor(4, 5), same),
    Record(
        ops.AllToAll,
        ((GRID,),),
        ALONE | {"split_dimension": 0, "concat_dimension": 1, "split_count": 1},
        oracle=same,
    ),
    Record(ops.CollectiveBroadcast, ((GRID,),), ALONE, oracle=same),
    Record(ops.CollectiveReduce, ((GRID,),), ALONE | ADD, oracle=same),
    Record(ops.CollectivePermute, (GRID,), {"source_target_pairs": ((0, 0),)}, oracle=same),
    Record(ops.CollectivePermute, (GRID,), {"source_target_pairs": ()}, oracle=np.zeros_like),
    Record(ops.CrossReplicaSum, (GRID,), ALONE, oracle=same),
    Record(ops.ReplicaId, (), oracle=lambda: np.uint32(0)),
    Record(ops.PartitionId, (), oracle=lambda: np.uint32(0)),
]
