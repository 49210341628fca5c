"""Since when artifacts have an op: what the page of coverage says is what writing finds."""

import pytest

from tests.ir.ops.records import collect
from trivium.ir.bytecode import serialize
from trivium.ir.bytecode.portable import first_version
from trivium.ir.bytecode.versions import FIRST
from trivium.ir.errors import UnsupportedOpError

RECORDS = {record.op: record for record in collect()}


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda record: record.op.short_name())
def test_first_version(record):
    """At 0.9.0 the op is refused, where it came later, and needs no more than it says. Its types may need more."""
    first = first_version(record.op)
    try:
        serialize(record.module(), str(FIRST))
    except UnsupportedOpError as error:
        needs = {op.reason for op in error.ops if op.name == record.op.NAME}
        assert (f"needs {first}" in str(needs)) == (first > FIRST)
    else:
        assert first == FIRST
