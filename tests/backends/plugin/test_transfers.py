"""Programs that exchange values with their host, through our own table."""

import ctypes
import functools

import numpy as np
import pytest

import trivium
from trivium.backends import plugin as own
from trivium.backends.table.buffer import PluginBuffer, from_host
from trivium.backends.table.client import PluginClient
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Plugin, Refusal, address_of
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import Error
from trivium.pjrt.channels import given, options
from trivium.pjrt.transfers import DOUBLED

X = np.arange(24, dtype=np.float32).reshape(4, 6)


@functools.cache
def client():
    return PluginClient(Plugin(own.api(), "trivium"))


def channel(number, kind):
    return f"channel_handle = #stablehlo.channel_handle<handle = {number}, type = {kind}>, is_host_transfer = true"


def compiled(text):
    found = client().compile(trivium.parse(text), CompileOptions())
    assert isinstance(found, PluginExecutable)
    return found


def run(executable, arrays, sends=None, receives=None):
    fields, alive = options(client().plugin, sends or {}, receives or {})
    buffers = [client().buffer_from_host(array) for array in arrays]
    results = [result.to_numpy() for result in executable.execute_buffers(buffers, **fields)]
    del alive
    return results


def ignored(*_):
    pass


LOOP = f"""func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %t = stablehlo.create_token : !stablehlo.token
  %r:3 = stablehlo.while(%i = %zero, %sum = %zero, %token = %t) : tensor<i32>, tensor<i32>, !stablehlo.token
  cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %sent = "stablehlo.send"(%i, %token) {{{channel(1, 2)}}} : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
    %y, %received = "stablehlo.recv"(%sent) {{{channel(1, 3)}}} :
      (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
    %next = stablehlo.add %i, %one : tensor<i32>
    %total = stablehlo.add %sum, %y : tensor<i32>
    stablehlo.return %next, %total, %received : tensor<i32>, tensor<i32>, !stablehlo.token
  }}
  %end = "stablehlo.send"(%r#1, %r#2) {{{channel(7, 2)}}} : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}}"""


def test_tokens_order_transfers():
    """A loop of the program asks the host for the square of each number, and then tells it the sum."""
    events = []

    def send(name, data, total, is_last):
        assert (total, is_last) == (4, True)
        events.append((name, int.from_bytes(data, "little")))

    def square(stream):
        (_, number) = events[-1]
        events.append(("asked", number))
        stream.add((number**2).to_bytes(4, "little"))
        stream.close()

    sends = {1: functools.partial(send, "loop"), 7: functools.partial(send, "end")}
    count, total = run(compiled(LOOP), [np.int32(10)], sends, {1: square})
    assert (count, total) == (10, 285)
    assert events == [*((name, i) for i in range(10) for name in ("loop", "asked")), ("end", 285)]


SEVERAL = f"""func.func @main(%x: tensor<4x6xf32>, %y: tensor<3xcomplex<f32>>)
    -> (tensor<2xi8>, tensor<4x6xf32>, tensor<0xf32>, tensor<3xcomplex<f32>>) {{
  %t = stablehlo.create_token : !stablehlo.token
  %sent = "stablehlo.send"(%x, %y, %t) {{{channel(1, 2)}}} :
    (tensor<4x6xf32>, tensor<3xcomplex<f32>>, !stablehlo.token) -> !stablehlo.token
  %r:5 = "stablehlo.recv"(%sent) {{{channel(-5, 3)}}} : (!stablehlo.token) ->
    (tensor<2xi8>, tensor<4x6xf32>, tensor<0xf32>, tensor<3xcomplex<f32>>, !stablehlo.token)
  return %r#0, %r#1, %r#2, %r#3 : tensor<2xi8>, tensor<4x6xf32>, tensor<0xf32>, tensor<3xcomplex<f32>>
}}"""


def test_several_values_of_one_op():
    """Chunks of the host need not end where values end."""
    y = np.array([1 + 2j, 3 - 4j, 0.5j], np.complex64)
    sent = []
    data = bytes([3, 4]) + X.tobytes() + y.tobytes()

    def receive(stream):
        stream.add(b"")
        for begin in range(0, len(data), 50):
            stream.add(data[begin : begin + 50])
            assert stream.sizes() == (len(data), min(begin + 50, len(data)))
        stream.close()

    found = run(compiled(SEVERAL), [X, y], {1: lambda *chunk: sent.append(chunk)}, {-5: receive})
    total = X.nbytes + y.nbytes
    assert sent == [(X.tobytes(), total, False), (y.tobytes(), total, True)]
    for result, expected in zip(found, (np.array([3, 4], np.int8), X, np.zeros(0, np.float32), y), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("sends", "receives", "words"),
    [
        ({}, {}, "main sends on channel 1, for which the caller has passed no callback"),
        ({1: ignored}, {}, "main receives on channel 2, for which"),
        ({2: ignored}, {1: ignored}, "main sends on channel 1, for which"),
        ({1: ignored, 3: ignored}, {2: ignored}, "a program that sends on channel 3, and main does not"),
    ],
)
def test_callbacks_are_those_of_the_program(sends, receives, words):
    with pytest.raises(Refusal, match=words) as raised:
        run(compiled(DOUBLED), [X], sends, receives)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_two_callbacks_of_one_channel():
    fields, alive = options(client().plugin, {1: ignored, 2: ignored}, {2: ignored})
    _, _, (infos, _), _ = alive
    infos[1].channel_id = 1
    with pytest.raises(Refusal, match="channel 1 has two callbacks"):
        compiled(DOUBLED).execute_buffers([client().buffer_from_host(X)], **fields)


def test_a_program_without_channels_takes_no_callbacks():
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    with pytest.raises(Refusal, match="sends on channel 1, and main does not"):
        run(compiled(text), [np.float32(1)], {1: ignored})


def test_the_run_after_a_failed_one():
    executable = compiled(DOUBLED)

    def send(*_):
        raise ValueError("not this time")

    with pytest.raises(Refusal, match="not this time"):
        run(executable, [X], {1: send}, {2: given(X)})
    with pytest.raises(Refusal, match="channel 2 was given 4 of 96 bytes before the host destroyed its stream"):
        run(executable, [X], {1: ignored}, {2: given(X[0, :1])})
    (result,) = run(executable, [X], {1: ignored}, {2: given(X)})
    np.testing.assert_array_equal(result, 3 * X)


def test_serialized_programs():
    executable = compiled(DOUBLED)
    call = client().plugin.call
    made = call("LoadedExecutable_GetExecutable", loaded_executable=executable.handle).executable
    found = call("Executable_Serialize", executable=made)
    data = ctypes.string_at(found.serialized_bytes, found.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.serialized_executable_deleter)(found.serialized_executable)
    call("Executable_Destroy", executable=made)
    loaded = call(
        "Executable_DeserializeAndLoad",
        client=client().handle,
        serialized_executable=address_of(data),
        serialized_executable_size=len(data),
    ).loaded_executable
    again = PluginExecutable(client(), trivium.parse(DOUBLED).main, loaded)
    (result,) = run(again, [X], {1: ignored}, {2: given(X)})
    np.testing.assert_array_equal(result, 3 * X)
    with pytest.raises(Refusal, match="no callback"):
        run(again, [X])


def test_without_a_host_of_the_table():
    executable = trivium.compile(trivium.parse(DOUBLED))
    with pytest.raises(Error, match="exchanges values with its host"):
        executable(X)


def test_channels_to_other_devices_are_refused():
    text = DOUBLED.replace("type = 2", "type = 1").replace("type = 3", "type = 1").replace("= true", "= false")
    with pytest.raises(
        Refusal, match=r"ways than on channels to its host:\n  - stablehlo.send, first at .*\n  - stablehlo.recv"
    ) as raised:
        compiled(text)
    assert raised.value.code == "UNIMPLEMENTED"


def test_each_device_has_its_own_callbacks(monkeypatch):
    monkeypatch.setenv("TRIVIUM_NUM_DEVICES", "2")
    pair = PluginClient(client().plugin)
    call, record = pair.plugin.call, pair.plugin.record
    two_replicas, code, form = bytes((0x1A, 4, 0x20, 2, 0x28, 1)), DOUBLED.encode(), b"mlir"
    program = record(
        "Program", code=address_of(code), code_size=len(code), format=address_of(form), format_size=len(form)
    )
    executable = call(
        "Client_Compile",
        client=pair.handle,
        program=ctypes.addressof(program),
        compile_options=address_of(two_replicas),
        compile_options_size=len(two_replicas),
    ).executable
    sent = {}

    def sender(device):
        return lambda data, total, is_last: sent.update({device: np.frombuffer(data, np.float32).reshape(X.shape)})

    each = [options(pair.plugin, {1: sender(device)}, {2: given(X - device)})[1] for device in range(2)]
    lists = [(ctypes.c_void_p * 2)(*(ctypes.addressof(alive[2][which]) for alive in each)) for which in range(2)]
    run_options = record(
        "ExecuteOptions",
        send_callbacks=ctypes.addressof(lists[0]),
        recv_callbacks=ctypes.addressof(lists[1]),
        num_send_ops=1,
        num_recv_ops=1,
    )
    buffers = [from_host(X + device, pair.devices[device]) for device in range(2)]
    inputs = [(ctypes.c_void_p * 1)(buffer.handle) for buffer in buffers]
    outputs = [(ctypes.c_void_p * 1)() for _ in range(2)]
    given_lists, made = ((ctypes.c_void_p * 2)(*map(ctypes.addressof, each)) for each in (inputs, outputs))
    call(
        "LoadedExecutable_Execute",
        executable=executable,
        options=ctypes.addressof(run_options),
        argument_lists=ctypes.addressof(given_lists),
        num_devices=2,
        num_args=1,
        output_lists=ctypes.addressof(made),
    )
    for device, output in enumerate(outputs):
        result = PluginBuffer(pair.devices[device].default_memory, output[0]).to_numpy()
        np.testing.assert_array_equal(sent[device], 2 * (X + device))
        np.testing.assert_array_equal(result, 2 * (X + device) + X - device)
    call("LoadedExecutable_Destroy", executable=executable)
