"""What only our own table promises of buffers whose elements come later."""

import ctypes

import numpy as np
import pytest

from tests.backends.plugin.test_transfers import client
from trivium.backends.table.plugin import Refusal
from trivium.pjrt.kit import Kit, X
from trivium.pjrt.promises import Manager


@pytest.fixture
def kit():
    made = Kit(client().plugin)
    made.__dict__["client"] = client()
    return made


@pytest.fixture
def manager(kit):
    made = Manager(kit, [X, X[:0]])
    yield made
    made.destroy()


def test_the_last_transfer_leaves_no_byte_unwritten(manager):
    data = X.tobytes()
    manager.transfer(0, data[8:40], 8, is_last=False)
    manager.transfer(0, data[20:60], 20, is_last=False)
    with pytest.raises(
        Refusal, match=r"the last transfer to the buffer of f32\[4,6\] leaves 8 of its 96 bytes unwritten"
    ):
        manager.transfer(0, data[60:], 60, is_last=True)
    manager.transfer(0, data[60:], 60, is_last=False)
    manager.transfer(0, data[:8], 0, is_last=True)
    with pytest.raises(Refusal, match=r"the buffer of f32\[4,6\] takes no more transfers"):
        manager.transfer(0, data, 0, is_last=True)
    np.testing.assert_array_equal(manager.retrieve(0).to_numpy(), X)


def test_buffers_are_retrieved_once(manager):
    manager.transfer(1, b"", 0, is_last=True)
    assert manager.retrieve(1).to_numpy().shape == (0, 6)
    with pytest.raises(Refusal, match="has already been retrieved"):
        manager.retrieve(1)


@pytest.mark.parametrize("index", [-1, 2])
def test_buffers_that_there_are_not(manager, index):
    for use in (manager.retrieve, manager.fail, lambda index: manager.transfer(index, b"", 0, is_last=False)):
        with pytest.raises(Refusal, match=f"there is no buffer {index}, the transfer manager has 2"):
            use(index)
    with pytest.raises(Refusal, match="there is no buffer"):
        manager.call("BufferSize", buffer_index=index)


@pytest.mark.parametrize(("offset", "size"), [(0, 97), (96, 1), (-1, 1), (2**63 - 1, 8), (0, -1)])
def test_ranges_that_are_not_within_a_buffer(manager, offset, size):
    data = X.tobytes() + b"more"
    with pytest.raises(Refusal, match=f"{size} bytes from offset {offset} on are not within the 96 bytes of f32"):
        manager.call("TransferData", buffer_index=0, data=id(data), offset=offset, transfer_size=size)


def test_transfers_that_are_none(manager, kit):
    with pytest.raises(Refusal, match="memory is null"):
        manager.call("TransferData", buffer_index=0, offset=0, transfer_size=8)
    with pytest.raises(Refusal, match="the error has the code OK"):
        manager.call("SetBufferError", buffer_index=0)
    dims = (ctypes.c_int64 * 1)(24)
    literal = {"shape_dims": ctypes.addressof(dims), "shape_num_dims": 1, "shape_element_type": 11}
    with pytest.raises(Refusal, match=r"the literal is f32\[24\], expected f32\[4,6\]"):
        manager.call("TransferLiteral", buffer_index=0, data=X.ctypes.data, **literal)


def test_memory_belongs_to_the_device_until_the_buffer_is_gone(kit):
    def in_use():
        return client().plugin.call("Device_MemoryStats", device=client().devices[0].handle).bytes_in_use

    before = in_use()
    manager = Manager(kit, [X, X])
    buffer = manager.retrieve(0)
    assert in_use() == before + 2 * X.nbytes
    manager.destroy()
    assert in_use() == before + X.nbytes
    with pytest.raises(Refusal, match="was destroyed before the last transfer"):
        buffer.to_numpy()
    buffer.delete()
    assert in_use() == before
