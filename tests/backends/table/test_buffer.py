"""Buffers and events of plugins, tested with our own plugin as any host would use it."""

import numpy as np
import pytest

import trivium
from tests.backends.table.programs import ADD, X
from trivium.backends import client
from trivium.backends.pjrt import Buffer, Client, Device, Event, Memory
from trivium.backends.table.plugin import Refusal


def test_it_is_a_client_in_pjrts_words() -> None:
    found = client("trivium")
    assert isinstance(found, Client)
    assert isinstance(found.devices[0], Device)
    assert isinstance(found.devices[0].default_memory, Memory)
    buffer = found.buffer_from_host(X)
    assert isinstance(buffer, Buffer)
    assert isinstance(buffer.ready, Event)
    executable = trivium.compile(ADD, device="trivium").loaded
    (result,) = executable.execute_buffers([buffer])
    result.ready.wait()
    assert (result.shape, result.dtype) == ((3, 2), np.float32)
    np.testing.assert_array_equal(result.to_numpy(), (X + X).T)
    buffer.delete()
    with pytest.raises(Refusal, match="deleted or donated") as refusal:
        buffer.to_numpy()
    assert refusal.value.code == "INVALID_ARGUMENT"
