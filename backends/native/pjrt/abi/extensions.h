// PJRT's C ABI: extensions of its table, which form a chain that begins in the table. Each is a table of functions as well.

#pragma once

#include "calls.h"

namespace trivium::pjrt {

// Layouts of arrays, and their serialized form.
struct Layouts_MemoryLayout;
struct Layouts_SerializedLayout;

struct Layouts_MemoryLayout_Destroy_Args : Record { Layouts_MemoryLayout* layout; };
struct Layouts_MemoryLayout_Serialize_Args : Record {  // out: all but layout
  Layouts_MemoryLayout* layout; const char* serialized_bytes; size_t serialized_bytes_size;
  Layouts_SerializedLayout* serialized_layout;
  void (*serialized_layout_deleter)(Layouts_SerializedLayout* layout);
};
struct Layouts_PJRT_Buffer_MemoryLayout_Args : Record { Buffer* buffer; Layouts_MemoryLayout* layout; };  // out: layout
struct Layouts_PJRT_Client_GetDefaultLayout_Args : Record {  // out: layout
  Client* client; Buffer_Type type; const int64_t* dims; size_t num_dims; Layouts_MemoryLayout* layout;
};
struct Layouts_PJRT_Topology_GetDefaultLayout_Args : Record {  // out: layout
  TopologyDescription* topology_description; Buffer_Type type; const int64_t* dims; size_t num_dims;
  Layouts_MemoryLayout* layout;
};
struct Layouts_PJRT_Executable_GetOutputLayouts_Args : Record {  // out: num_outputs, layouts
  Executable* executable; size_t num_outputs; Layouts_MemoryLayout** layouts;
};
struct Layouts_PJRT_Executable_GetParameterLayouts_Args : Record {  // out: num_parameters, layouts
  Executable* executable; size_t num_parameters; Layouts_MemoryLayout** layouts;
};

struct Layouts_Extension {
  Extension_Base base;
  Error* (*Layouts_MemoryLayout_Destroy)(Layouts_MemoryLayout_Destroy_Args* args);
  Error* (*Layouts_MemoryLayout_Serialize)(Layouts_MemoryLayout_Serialize_Args* args);
  Error* (*Layouts_PJRT_Client_GetDefaultLayout)(Layouts_PJRT_Client_GetDefaultLayout_Args* args);
  Error* (*Layouts_PJRT_Buffer_MemoryLayout)(Layouts_PJRT_Buffer_MemoryLayout_Args* args);
  Error* (*Layouts_PJRT_Topology_GetDefaultLayout)(Layouts_PJRT_Topology_GetDefaultLayout_Args* args);
  Error* (*Layouts_PJRT_Executable_GetOutputLayouts)(Layouts_PJRT_Executable_GetOutputLayouts_Args* args);
  Error* (*Layouts_PJRT_Executable_GetParameterLayouts)(Layouts_PJRT_Executable_GetParameterLayouts_Args* args);
};

// How devices hold the arguments and results of a program: XLA's `OpSharding`, serialized. Null if that is not known.
struct Shardings_PJRT_Executable_ParameterShardings_Args : Record {  // out: all but executable
  Executable* executable; size_t num_parameters; const char* const* shardings; const size_t* sharding_sizes;
};
struct Shardings_PJRT_Executable_OutputShardings_Args : Record {  // out: all but executable
  Executable* executable; size_t num_outputs; const char* const* shardings; const size_t* sharding_sizes;
};

struct Shardings_Extension {
  Extension_Base base;
  Error* (*Shardings_PJRT_Executable_ParameterShardings)(Shardings_PJRT_Executable_ParameterShardings_Args* args);
  Error* (*Shardings_PJRT_Executable_OutputShardings)(Shardings_PJRT_Executable_OutputShardings_Args* args);
};

// The memories that a device has, without the device.
struct MemoryDescription;

struct DeviceDescription_MemoryDescriptions_Args : Record {  // out: all but device_description
  DeviceDescription* device_description; const MemoryDescription* const* memory_descriptions;
  size_t num_memory_descriptions; size_t default_memory_index;
};
struct MemoryDescription_Kind_Args : Record {  // out: kind, kind_size, kind_id
  const MemoryDescription* memory_description; const char* kind; size_t kind_size; int kind_id;
};

struct MemoryDescriptions_Extension {
  Extension_Base base;
  Error* (*DeviceDescription_MemoryDescriptions)(DeviceDescription_MemoryDescriptions_Args* args);
  Error* (*MemoryDescription_Kind)(MemoryDescription_Kind_Args* args);
};

// Foreign functions, their types, and the data that a host passes to them with a run.
struct FFI_Type_Info { void (*deleter)(void* object); void (*serialize)(); void (*deserialize)(); };
struct FFI_UserData { int64_t type_id; void* data; };

struct FFI_Type_Register_Args : Record {  // in and out: type_id
  const char* type_name; size_t type_name_size; int64_t type_id; FFI_Type_Info* type_info;
};
struct FFI_UserData_Add_Args : Record { ExecuteContext* context; FFI_UserData user_data; };
struct FFI_Register_Handler_Args {
  size_t struct_size; const char* target_name; size_t target_name_size; void* handler; const char* platform_name;
  size_t platform_name_size; int32_t traits;
};

struct FFI_Extension {
  Extension_Base base;
  Error* (*type_register)(FFI_Type_Register_Args* args);
  Error* (*user_data_add)(FFI_UserData_Add_Args* args);
  Error* (*register_handler)(FFI_Register_Handler_Args* args);
};

// Functions that a host registers for events of a client. What they receive depends on the event.
enum Callback_Type : int32_t {
  Callback_Type_Unknown, Callback_Type_Tpu_SliceBuilder, Callback_Type_Prefatal,
};

using Callback_Function = void (*)(void* args, void* user_arg);

// Of the last event before the process ends because of an error.
struct Callback_PrefatalArgs { size_t struct_size; Error_Code error_code; const char* error_message; size_t error_message_size; };

struct Callback_RegisterCallback_Args {
  size_t struct_size; Client* client; Callback_Type type; Callback_Function callback; void* user_arg;
};
struct Callback_InvokeCallback_Args { size_t struct_size; Client* client; Callback_Type type; void* args; };

struct Callback_Extension {
  Extension_Base base;
  Error* (*register_callback)(Callback_RegisterCallback_Args* args);
  Error* (*invoke_callback)(Callback_InvokeCallback_Args* args);
};

}  // namespace trivium::pjrt
