"""The first version whose artifacts have an op: what the page of coverage says agrees with what writing finds."""

import pytest

from tests.ir.ops.records import collect
from trivium.ir.bytecode import serialize
from trivium.ir.bytecode.portable import first_version
from trivium.ir.bytecode.versions import FIRST
from trivium.ir.errors import UnsupportedOpError

RECORDS = {record.op: record for record in collect()}


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda record: record.op.short_name())
def test_first_version(record):
    """Version 0.9.0 refuses ops that were added later, and names exactly the version that the page states. The types of
    an op may need a newer one."""
    first = first_version(record.op)
    try:
        serialize(record.module(), str(FIRST))
    except UnsupportedOpError as error:
        needs = {op.reason for op in error.ops if op.name == record.op.NAME}
        assert (f"needs {first}" in str(needs)) == (first > FIRST)
    else:
        assert first == FIRST
