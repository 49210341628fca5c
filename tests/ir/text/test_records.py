"""Every record of every op is printed and read: the pretty and the generic form are the same program, and MLIR
agrees."""

import pytest

from tests.ir.ops.records import Record, collect
from trivium.ir.equality import difference
from trivium.ir.ops import CollectiveReduce
from trivium.ir.text import parse, print_module

RECORDS = [pytest.param(record, id=str(record)) for record in collect()]


def known_to_mlir(record: Record) -> bool:
    """Whether the MLIR that comes with JAX knows the op and, for dot products, the algorithm."""
    algorithm = record.attributes.get("algorithm")
    return record.op is not CollectiveReduce and (algorithm is None or algorithm.lhs_component_count == 1)


@pytest.mark.parametrize("record", RECORDS)
def test_round_trip(record: Record) -> None:
    module = record.module()
    assert difference(parse(print_module(module)), module) == ""
    assert difference(parse(print_module(module, generic=True)), module) == ""


@pytest.mark.jax
def test_mlir_agrees(mlir) -> None:
    for record in collect():
        module = record.module()
        if known_to_mlir(record):
            read = mlir(print_module(module))
            assert mlir(print_module(module, generic=True)) == read, str(record)
            assert difference(parse(read), module) == "", str(record)
