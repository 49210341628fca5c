"""Checks of the table's extensions."""

from __future__ import annotations

import ctypes

from trivium.backends.table.abi import TYPES, abi
from trivium.backends.table.plugin import address_of, pointers, string
from trivium.pjrt.foreign import address, handler
from trivium.pjrt.kit import Kit, X, check, expect

ROW_MAJOR = "{1,0}"
"""The layout of a matrix in XLA's notation."""


def _layout(kit: Kit, handle: int) -> str:
    """Returns a layout's serialized form."""
    found = kit.call("Layouts_MemoryLayout_Serialize", layout=handle)
    text = string(found.serialized_bytes, found.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.serialized_layout_deleter)(found.serialized_layout)
    return text


def _owned(kit: Kit, function: str, **fields: object) -> str:
    """Returns the layout that a function makes for its caller."""
    handle = kit.call(function, **fields).layout
    text = _layout(kit, handle)
    kit.plugin.call("Layouts_MemoryLayout_Destroy", layout=handle)
    return text


@check("layouts")
def layouts_of_buffers(kit: Kit) -> None:
    text = _owned(kit, "Layouts_PJRT_Buffer_MemoryLayout", buffer=kit.objects["buffer"])
    expect(text.startswith("{"), f"a matrix has the layout {text}")
    kit.refused("the layout of no buffer", "Layouts_PJRT_Buffer_MemoryLayout")
    kit.refused("the serialized form of no layout", "Layouts_MemoryLayout_Serialize")
    kit.plugin.call("Layouts_MemoryLayout_Destroy")


@check("layouts")
def layouts_of_results(kit: Kit) -> None:
    executable = kit.objects["executable"]
    found = kit.call("Layouts_PJRT_Executable_GetOutputLayouts", executable=executable)
    expect(found.num_outputs == 2, f"{found.num_outputs} of 2 results have layouts")
    for handle in pointers(found.layouts, found.num_outputs):
        expect(_layout(kit, handle).startswith("{"), "a result has no layout")


@check("layouts")
def layouts_of_arguments(kit: Kit) -> None:
    executable = kit.objects["executable"]
    found = kit.call("Layouts_PJRT_Executable_GetParameterLayouts", executable=executable)
    expect(found.num_parameters == 1, f"{found.num_parameters} arguments have layouts, expected 1")
    for handle in pointers(found.layouts, found.num_parameters):
        expect(_layout(kit, handle) == ROW_MAJOR, f"an argument has the layout {_layout(kit, handle)}")


@check("shardings")
def shardings_of_a_program_of_one_device(kit: Kit) -> None:
    """A plugin may know none; otherwise, there is one for each argument and result."""
    executable = kit.objects["executable"]
    found = kit.call("Shardings_PJRT_Executable_ParameterShardings", executable=executable)
    expect(not found.shardings or found.num_parameters == 1, f"{found.num_parameters} arguments have shardings")
    found = kit.call("Shardings_PJRT_Executable_OutputShardings", executable=executable)
    expect(not found.shardings or found.num_outputs == 2, f"{found.num_outputs} results have shardings")
    kit.refused("the shardings of no program", "Shardings_PJRT_Executable_OutputShardings")


@check("layouts")
def layouts_by_default(kit: Kit) -> None:
    dims = (ctypes.c_int64 * 2)(4, 6)
    matrix = {"type": TYPES["float32"], "dims": ctypes.addressof(dims), "num_dims": 2}
    client, topology = kit.client.handle, kit.objects["topology"]
    for function, owner in (
        ("Layouts_PJRT_Client_GetDefaultLayout", {"client": client}),
        ("Layouts_PJRT_Topology_GetDefaultLayout", {"topology_description": topology}),
    ):
        text = _owned(kit, function, **owner, **matrix)
        expect(text.startswith(ROW_MAJOR[:-1]), f"a matrix has the layout {text} by default, expected {ROW_MAJOR}")
        expect(_owned(kit, function, **owner, type=TYPES["float32"]) == "{}", "a scalar has a layout")
        kit.refused("the layout of nothing", function, **owner)


@check("memory descriptions")
def descriptions_name_the_memories_of_devices(kit: Kit) -> None:
    found = kit.call("DeviceDescription_MemoryDescriptions", device_description=kit.objects["device_description"])
    described = {}
    for handle in pointers(found.memory_descriptions, found.num_memory_descriptions):
        kind = kit.plugin.call("MemoryDescription_Kind", memory_description=handle)
        described[kind.kind_id] = string(kind.kind, kind.kind_size)
    memories = kit.plugin.call("Device_AddressableMemories", device=kit.objects["device"])
    own = {}
    for handle in pointers(memories.memories, memories.num_memories):
        kind = kit.plugin.call("Memory_Kind", memory=handle)
        own[kit.plugin.call("Memory_Kind_Id", memory=handle).kind_id] = string(kind.kind, kind.kind_size)
    expect(described == own, f"a device has the memories {own}, and its description names {described}")
    number = ctypes.c_int64(found.default_memory_index).value
    expect(-1 <= number < len(described), f"the default memory is number {number} of {len(described)}")
    kit.refused("the memories of no device", "DeviceDescription_MemoryDescriptions")


@check("callbacks")
def callbacks_of_the_host(kit: Kit) -> None:
    seen: list[tuple[int, int]] = []
    own = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        lambda given, argument: seen.append((given, argument))
    )
    kit.alive.append(own)
    text = b"the end"
    event = kit.plugin.record("Callback_PrefatalArgs", error_message=address_of(text), error_message_size=len(text))
    fields = {"client": kit.client.handle, "type": abi().constants["Callback_Type_Prefatal"]}
    for argument in (1, 2):
        kit.call("Callback_RegisterCallback", **fields, callback=address(own), user_arg=argument)
    kit.call("Callback_InvokeCallback", **fields, args=ctypes.addressof(event))
    expect(seen == [(ctypes.addressof(event), argument) for argument in (1, 2)], f"callbacks received {seen}")
    kit.refused("no callback", "Callback_RegisterCallback", **fields)
    kit.refused("an unknown event", "Callback_InvokeCallback", client=kit.client.handle, type=0)


FOREIGN = "trivium.pjrt.check"
"""The name of a foreign function, and of a type of its data."""

CALL = f"""func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {{
  %0 = stablehlo.custom_call @{FOREIGN}(%x) {{api_version = 4 : i32, has_side_effect = true}}
    : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""


def _register_type(kit: Kit) -> int:
    """Returns the number of a new type, whose objects are not deleted."""
    name, info = FOREIGN.encode(), abi().structures["FFI_Type_Info"]()
    fields = {"type_name": address_of(name), "type_name_size": len(name), "type_info": ctypes.addressof(info)}
    number = kit.call("FFI_Type_Register", **fields).type_id
    again = kit.call("FFI_Type_Register", **fields, type_id=number).type_id
    expect(again == number, f"a type has the numbers {number} and {again}")
    kit.refused("another number of a type", "FFI_Type_Register", **fields, type_id=number + 1)
    return number


@check("foreign functions")
def handlers_receive_the_data_of_their_run(kit: Kit) -> None:
    kind = _register_type(kit)
    seen: list[int | None] = []
    own = handler(lambda call: seen.append(call.user_data(kind)))
    kit.alive.append(own)
    name, platform = FOREIGN.encode(), kit.client.platform_name.encode()
    fields = {
        "target_name": address_of(name),
        "target_name_size": len(name),
        "platform_name": address_of(platform),
        "platform_name_size": len(platform),
    }
    kit.call("FFI_Register_Handler", **fields, handler=address(own))
    executable, context = kit.compile(CALL), kit.call("ExecuteContext_Create").context
    data = abi().structures["FFI_UserData"](kind, address(own))
    kit.call("FFI_UserData_Add", context=context, user_data=data)
    kit.refused("data of the same type", "FFI_UserData_Add", context=context, user_data=data)
    for given in (context, None):
        (result,) = executable.execute_buffers([kit.buffer()], context=given)
        expect(result.to_numpy().shape == X.shape, "a foreign function has a result of another shape")
    expect(seen == [address(own), None], f"the handler received {seen}")
    kit.plugin.call("ExecuteContext_Destroy", context=context)
