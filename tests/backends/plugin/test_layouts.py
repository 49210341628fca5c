"""Layouts that hosts request of programs and buffers, through our own table."""

import ctypes

import numpy as np
import pytest

import trivium
from tests.backends.plugin.test_transfers import client
from trivium.backends.plugin.layouts import Layouts, take_layouts
from trivium.backends.table.buffer import PluginBuffer
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Refusal, address_of, string
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import CompileError
from trivium.pjrt.kit import Kit

X = np.arange(24, dtype=np.float32).reshape(4, 6)
Y = np.arange(24, dtype=np.int8).reshape(2, 3, 4)

TURNED = """func.func @main(%x: tensor<4x6xf32> {{mhlo.layout_mode = "{}"}}, %y: tensor<2x3x4xi8>)
    -> (tensor<4x6xf32>, tensor<2x3x4xi8> {{mhlo.layout_mode = "{}"}}) {{
  %0 = stablehlo.add %x, %x : tensor<4x6xf32>
  return %0, %y : tensor<4x6xf32>, tensor<2x3x4xi8>
}}"""


def compiled(text):
    found = client().compile(trivium.parse(text), CompileOptions())
    assert isinstance(found, PluginExecutable)
    return found


def in_order(array, minor_to_major):
    """A buffer with the array in a layout."""
    kit = Kit(client().plugin)
    kit.__dict__["client"] = client()
    order = (ctypes.c_int64 * array.ndim)(*minor_to_major)
    layout = kit.plugin.record("Buffer_MemoryLayout")
    layout.tiled = kit.plugin.record(
        "Buffer_MemoryLayout_Tiled", minor_to_major=ctypes.addressof(order), minor_to_major_size=array.ndim
    )
    made = kit.plugin.call(
        "Client_BufferFromHostBuffer", **kit.from_host(array, device_layout=ctypes.addressof(layout))
    )
    kit.plugin.call("Event_Destroy", event=made.done_with_host_buffer)
    return PluginBuffer(client().devices[0].default_memory, made.buffer)


def layout_of(buffer):
    call = client().plugin.call
    made = call("Layouts_PJRT_Buffer_MemoryLayout", buffer=buffer.handle).layout
    found = call("Layouts_MemoryLayout_Serialize", layout=made)
    text = string(found.serialized_bytes, found.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.serialized_layout_deleter)(found.serialized_layout)
    call("Layouts_MemoryLayout_Destroy", layout=made)
    return text


def bytes_of(buffer):
    """The memory itself."""
    found = client().plugin.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer.handle)
    return ctypes.string_at(found.device_memory_ptr, np.prod(buffer.shape) * buffer.dtype.itemsize)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_buffers(order):
    buffer = in_order(Y, order)
    assert layout_of(buffer) == f"{{{','.join(map(str, order))}}}"
    assert bytes_of(buffer) == Y.transpose(order[::-1]).tobytes()
    np.testing.assert_array_equal(buffer.to_numpy(), Y)
    found = client().plugin.call("Buffer_GetMemoryLayout", buffer=buffer.handle).layout.tiled
    assert tuple((ctypes.c_int64 * 3).from_address(found.minor_to_major)) == order


def test_programs():
    executable = compiled(TURNED.format("{0,1}", "{1,2,0}"))
    results = executable.execute_buffers([in_order(X, (0, 1)), in_order(Y, (2, 1, 0))])
    assert [layout_of(result) for result in results] == ["{1,0}", "{1,2,0}"]
    assert bytes_of(results[1]) == Y.transpose(0, 2, 1).tobytes()
    for result, expected in zip(results, (2 * X, Y), strict=True):
        np.testing.assert_array_equal(result.to_numpy(), expected)
    with pytest.raises(Refusal, match=r"argument 0 of main is f32\[4,6\], expected f32\[4,6\]\{0,1\}"):
        executable.execute_buffers([in_order(X, (1, 0)), in_order(Y, (2, 1, 0))])


def test_serialized_programs():
    call = client().plugin.call
    executable = compiled(TURNED.format("{0,1}", "{0,1,2}"))
    made = call("LoadedExecutable_GetExecutable", loaded_executable=executable.handle).executable
    found = call("Executable_Serialize", executable=made)
    data = ctypes.string_at(found.serialized_bytes, found.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.serialized_executable_deleter)(found.serialized_executable)
    fields = {"serialized_executable": address_of(data), "serialized_executable_size": len(data)}
    loaded = call("Executable_DeserializeAndLoad", client=client().handle, **fields).loaded_executable
    again = PluginExecutable(client(), executable.signature, loaded)
    results = again.execute_buffers([in_order(X, (0, 1)), in_order(Y, (2, 1, 0))])
    assert [layout_of(result) for result in results] == ["{1,0}", "{0,1,2}"]
    np.testing.assert_array_equal(results[0].to_numpy(), 2 * X)
    call("Executable_Destroy", executable=made)


def test_layouts_are_written_and_read():
    layouts = take_layouts(trivium.parse(TURNED.format("{0,1}", "{0,1,2}")))
    assert layouts == Layouts(((0, 1), ()), ((), (0, 1, 2)))
    assert layouts.text() == "0,1 - - 0,1,2"
    assert Layouts.read(layouts.text(), 2, 2) == layouts
    plain = take_layouts(trivium.parse(TURNED.format("auto", "{2,1,0}")))
    assert (plain.text(), Layouts.read("", 2, 2)) == ("", plain)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("{0,1:T(8,128)}", "without tiles"), ("{0,0}", "which has 2 dimensions"), ("{0}", "which has 2 dimensions")],
)
def test_what_is_no_layout(mode, reason):
    with pytest.raises(CompileError, match=reason):
        take_layouts(trivium.parse(TURNED.format(mode, "default")))
