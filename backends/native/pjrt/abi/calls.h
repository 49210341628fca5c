// PJRT's C ABI: the arguments of its functions. One record for each function, which takes a pointer to it; what the function writes is marked `out`.

#pragma once

#include "values.h"

namespace trivium::pjrt {

// Errors, the plugin and events.
struct Error_Destroy_Args : Record { Error* error; };
struct Error_Message_Args : Record { const Error* error; const char* message; size_t message_size; };  // out: message, message_size
struct Error_GetCode_Args : Record { const Error* error; Error_Code code; };  // out: code
struct Plugin_Initialize_Args : Record {};
struct Plugin_Attributes_Args : Record { const NamedValue* attributes; size_t num_attributes; };  // out: attributes, num_attributes
struct Event_Destroy_Args : Record { Event* event; };
struct Event_IsReady_Args : Record { Event* event; bool is_ready; };  // out: is_ready
struct Event_Error_Args : Record { Event* event; };
struct Event_Await_Args : Record { Event* event; };
struct Event_OnReady_Args : Record { Event* event; Event_OnReadyCallback callback; void* user_arg; };
struct Event_Create_Args : Record { Event* event; };  // out: event
struct Event_Set_Args : Record { Event* event; Error_Code error_code; const char* error_message; size_t error_message_size; };

// Clients.
struct Client_Create_Args : Record {  // out: client
  const NamedValue* create_options; size_t num_options; KeyValueGetCallback kv_get_callback; void* kv_get_user_arg;
  KeyValuePutCallback kv_put_callback; void* kv_put_user_arg; Client* client;
  KeyValueTryGetCallback kv_try_get_callback; void* kv_try_get_user_arg;
};
struct Client_Destroy_Args : Record { Client* client; };
struct Client_PlatformName_Args : Record {  // out: platform_name, platform_name_size
  Client* client; const char* platform_name; size_t platform_name_size;
};
struct Client_ProcessIndex_Args : Record { Client* client; int process_index; };  // out: process_index
struct Client_PlatformVersion_Args : Record {  // out: platform_version, platform_version_size
  Client* client; const char* platform_version; size_t platform_version_size;
};
struct Client_TopologyDescription_Args : Record { Client* client; TopologyDescription* topology; };  // out: topology
struct Client_Devices_Args : Record { Client* client; Device* const* devices; size_t num_devices; };  // out: devices, num_devices
struct Client_AddressableDevices_Args : Record {  // out: addressable_devices, num_addressable_devices
  Client* client; Device* const* addressable_devices; size_t num_addressable_devices;
};
struct Client_LookupDevice_Args : Record { Client* client; int id; Device* device; };  // out: device
struct Client_LookupAddressableDevice_Args : Record {  // out: addressable_device
  Client* client; int local_hardware_id; Device* addressable_device;
};
struct Client_UpdateGlobalProcessInfo_Args : Record { Client* client; ProcessInfo* process_infos; size_t num_process_infos; };
struct Client_AddressableMemories_Args : Record {  // out: addressable_memories, num_addressable_memories
  Client* client; Memory* const* addressable_memories; size_t num_addressable_memories;
};
struct Client_Compile_Args : Record {  // out: executable
  Client* client; const Program* program; const char* compile_options; size_t compile_options_size;
  LoadedExecutable* executable;
};
struct Client_DefaultDeviceAssignment_Args : Record {  // out: default_assignment
  Client* client; int num_replicas; int num_partitions; size_t default_assignment_size; int* default_assignment;
};
struct Client_DmaMap_Args : Record { Client* client; void* data; size_t size; };
struct Client_DmaUnmap_Args : Record { Client* client; void* data; };
struct Client_CreateUninitializedBuffer_Args : Record {  // out: buffer
  Client* client; const int64_t* shape_dims; size_t shape_num_dims; Buffer_Type shape_element_type;
  Buffer_MemoryLayout* shape_layout; Device* device; Memory* memory; Buffer* buffer;
};
struct Client_CreateErrorBuffer_Args : Record {  // out: buffer
  Client* client; Error_Code error_code; const char* error_message; size_t error_message_size;
  const int64_t* shape_dims; size_t shape_num_dims; Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout;
  Memory* memory; Buffer* buffer;
};
struct Client_CreateAliasBuffer_Args : Record {  // out: alias_buffer, fulfill_alias_buffer_cb
  Client* client; Memory* memory; const int64_t* shape_dims; size_t shape_num_dims; Buffer_Type shape_element_type;
  Buffer_MemoryLayout* shape_layout; Buffer* alias_buffer; FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
struct Client_FulfillAliasBuffer_Args : Record {
  Client* client; Buffer* buffer; Error_Code status_code; const char* error_message; size_t error_message_size;
  FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
struct Client_BufferFromHostBuffer_Args : Record {  // out: done_with_host_buffer, buffer
  Client* client; const void* data; Buffer_Type type; const int64_t* dims; size_t num_dims;
  const int64_t* byte_strides; size_t num_byte_strides; HostBufferSemantics host_buffer_semantics; Device* device;
  Memory* memory; Buffer_MemoryLayout* device_layout; Event* done_with_host_buffer; Buffer* buffer;
};
struct Client_CreateViewOfDeviceBuffer_Args : Record {  // out: buffer
  Client* client; void* device_buffer_ptr; const int64_t* dims; size_t num_dims; Buffer_Type element_type;
  Buffer_MemoryLayout* layout; Device* device; void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg; intptr_t stream; Buffer* buffer; Memory* memory;
};
struct Client_CreateBuffersForAsyncHostToDevice_Args : Record {  // out: transfer_manager
  Client* client; ShapeSpec* shape_specs; size_t num_shape_specs; Buffer_MemoryLayout** device_layouts;
  size_t num_device_layouts; Memory* memory; AsyncHostToDeviceTransferManager* transfer_manager;
};
struct Compile_Args : Record {  // out: executable
  const TopologyDescription* topology; const Program* program; const char* compile_options;
  size_t compile_options_size; Client* client; Executable* executable;
};

// Devices, memories and topologies.
struct DeviceDescription_Id_Args : Record { DeviceDescription* device_description; int id; };  // out: id
struct DeviceDescription_ProcessIndex_Args : Record { DeviceDescription* device_description; int process_index; };  // out: process_index
struct DeviceDescription_Attributes_Args : Record {  // out: num_attributes, attributes
  DeviceDescription* device_description; size_t num_attributes; const NamedValue* attributes;
};
struct DeviceDescription_Kind_Args : Record {  // out: device_kind, device_kind_size
  DeviceDescription* device_description; const char* device_kind; size_t device_kind_size;
};
struct DeviceDescription_DebugString_Args : Record {  // out: debug_string, debug_string_size
  DeviceDescription* device_description; const char* debug_string; size_t debug_string_size;
};
struct DeviceDescription_ToString_Args : Record {  // out: to_string, to_string_size
  DeviceDescription* device_description; const char* to_string; size_t to_string_size;
};
struct Device_GetDescription_Args : Record { Device* device; DeviceDescription* device_description; };  // out: device_description
struct Device_IsAddressable_Args : Record { Device* device; bool is_addressable; };  // out: is_addressable
struct Device_LocalHardwareId_Args : Record { Device* device; int local_hardware_id; };  // out: local_hardware_id
struct Device_AddressableMemories_Args : Record {  // out: memories, num_memories
  Device* device; Memory* const* memories; size_t num_memories;
};
struct Device_DefaultMemory_Args : Record { Device* device; Memory* memory; };  // out: memory
struct Device_MemoryStats_Args : Record {  // out: all but device
  Device* device; int64_t bytes_in_use; int64_t peak_bytes_in_use; bool peak_bytes_in_use_is_set; int64_t num_allocs;
  bool num_allocs_is_set; int64_t largest_alloc_size; bool largest_alloc_size_is_set; int64_t bytes_limit;
  bool bytes_limit_is_set; int64_t bytes_reserved; bool bytes_reserved_is_set; int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set; int64_t bytes_reservable_limit; bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes; bool largest_free_block_bytes_is_set; int64_t pool_bytes; bool pool_bytes_is_set;
  int64_t peak_pool_bytes; bool peak_pool_bytes_is_set;
};
struct Device_GetAttributes_Args : Record {  // out: all but device
  Device* device; const NamedValue* attributes; size_t num_attributes; Device_Attributes* device_attributes;
  void (*attributes_deleter)(Device_Attributes* attributes);
};
struct Device_PoisonExecution_Args : Record {  // out: poisoned
  Device* device; int32_t launch_id; Error_Code error_code; const char* error_message; size_t error_message_size;
  bool poisoned;
};
struct Device_CreateAsyncTrackingEvent_Args : Record {  // out: event
  Device* device; const char* description; size_t description_size; AsyncTrackingEvent* event;
};
struct AsyncTrackingEvent_Destroy_Args : Record { AsyncTrackingEvent* event; };
struct Memory_Id_Args : Record { Memory* memory; int id; };  // out: id
struct Memory_Kind_Args : Record { Memory* memory; const char* kind; size_t kind_size; };  // out: kind, kind_size
struct Memory_Kind_Id_Args : Record { Memory* memory; int kind_id; };  // out: kind_id
struct Memory_DebugString_Args : Record {  // out: debug_string, debug_string_size
  Memory* memory; const char* debug_string; size_t debug_string_size;
};
struct Memory_ToString_Args : Record { Memory* memory; const char* to_string; size_t to_string_size; };  // out: to_string, to_string_size
struct Memory_AddressableByDevices_Args : Record {  // out: devices, num_devices
  Memory* memory; Device* const* devices; size_t num_devices;
};
struct TopologyDescription_Create_Args : Record {  // out: topology
  const char* topology_name; size_t topology_name_size; const NamedValue* create_options; size_t num_options;
  TopologyDescription* topology;
};
struct TopologyDescription_Destroy_Args : Record { TopologyDescription* topology; };
struct TopologyDescription_PlatformVersion_Args : Record {  // out: platform_version, platform_version_size
  TopologyDescription* topology; const char* platform_version; size_t platform_version_size;
};
struct TopologyDescription_PlatformName_Args : Record {  // out: platform_name, platform_name_size
  const TopologyDescription* topology; const char* platform_name; size_t platform_name_size;
};
struct TopologyDescription_GetDeviceDescriptions_Args : Record {  // out: descriptions, num_descriptions
  const TopologyDescription* topology; DeviceDescription* const* descriptions; size_t num_descriptions;
};
struct TopologyDescription_Serialize_Args : Record {  // out: serialized_bytes, serialized_bytes_size, serialized_topology
  TopologyDescription* topology; const char* serialized_bytes; size_t serialized_bytes_size;
  SerializedTopology* serialized_topology;
  void (*serialized_topology_deleter)(SerializedTopology* serialized_topology);
};
struct TopologyDescription_Deserialize_Args : Record {  // out: topology
  const char* serialized_topology; size_t serialized_topology_size; TopologyDescription* topology;
};
struct TopologyDescription_Attributes_Args : Record {  // out: attributes, num_attributes
  TopologyDescription* topology; const NamedValue* attributes; size_t num_attributes;
};

// Transfers in pieces.
struct AsyncHostToDeviceTransferManager_Destroy_Args : Record { AsyncHostToDeviceTransferManager* transfer_manager; };
struct AsyncHostToDeviceTransferManager_TransferData_Args : Record {  // out: done_with_h2d_transfer
  AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; const void* data; int64_t offset;
  int64_t transfer_size; bool is_last_transfer; Event* done_with_h2d_transfer;
};
struct AsyncHostToDeviceTransferManager_RetrieveBuffer_Args : Record {  // out: buffer_out
  AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; Buffer* buffer_out;
};
struct AsyncHostToDeviceTransferManager_Device_Args : Record {  // out: device_out
  AsyncHostToDeviceTransferManager* transfer_manager; Device* device_out;
};
struct AsyncHostToDeviceTransferManager_BufferCount_Args : Record {  // out: buffer_count
  AsyncHostToDeviceTransferManager* transfer_manager; size_t buffer_count;
};
struct AsyncHostToDeviceTransferManager_BufferSize_Args : Record {  // out: buffer_size
  AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; size_t buffer_size;
};
struct AsyncHostToDeviceTransferManager_SetBufferError_Args : Record {
  AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; Error_Code error_code;
  const char* error_message; size_t error_message_size;
};
struct AsyncHostToDeviceTransferManager_AddMetadata_Args : Record {
  AsyncHostToDeviceTransferManager* transfer_manager; const NamedValue* transfer_metadata; size_t num_metadata;
};
struct AsyncHostToDeviceTransferManager_TransferLiteral_Args : Record {  // out: done_with_h2d_transfer
  AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; const void* data; const int64_t* shape_dims;
  size_t shape_num_dims; Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout;
  Event* done_with_h2d_transfer;
};
struct CopyToDeviceStream_Destroy_Args : Record { CopyToDeviceStream* stream; };
struct CopyToDeviceStream_AddChunk_Args : Record {  // out: transfer_complete
  CopyToDeviceStream* stream; Chunk* chunk; Event* transfer_complete;
};
struct CopyToDeviceStream_TotalBytes_Args : Record { CopyToDeviceStream* stream; int64_t total_bytes; };  // out: total_bytes
struct CopyToDeviceStream_GranuleSize_Args : Record {  // out: granule_size_in_bytes
  CopyToDeviceStream* stream; int64_t granule_size_in_bytes;
};
struct CopyToDeviceStream_CurrentBytes_Args : Record { CopyToDeviceStream* stream; int64_t current_bytes; };  // out: current_bytes

// Executables.
struct ExecuteContext_Create_Args : Record { ExecuteContext* context; };  // out: context
struct ExecuteContext_Destroy_Args : Record { ExecuteContext* context; };
struct Executable_Destroy_Args : Record { Executable* executable; };
struct LoadedExecutable_Destroy_Args : Record { LoadedExecutable* executable; };
struct LoadedExecutable_GetExecutable_Args : Record { LoadedExecutable* loaded_executable; Executable* executable; };  // out: executable
struct LoadedExecutable_GetDeviceAssignment_Args : Record {  // out: serialized_bytes, serialized_bytes_size
  LoadedExecutable* executable; const char* serialized_bytes; size_t serialized_bytes_size;
  DeviceAssignmentSerialized* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(DeviceAssignmentSerialized* da);
};
struct Executable_Name_Args : Record {  // out: executable_name, executable_name_size
  Executable* executable; const char* executable_name; size_t executable_name_size;
};
struct Executable_NumReplicas_Args : Record { Executable* executable; size_t num_replicas; };  // out: num_replicas
struct Executable_NumPartitions_Args : Record { Executable* executable; size_t num_partitions; };  // out: num_partitions
struct LoadedExecutable_AddressableDevices_Args : Record {  // out: addressable_devices, num_addressable_devices
  LoadedExecutable* executable; Device* const* addressable_devices; size_t num_addressable_devices;
};
struct Executable_OptimizedProgram_Args : Record { Executable* executable; Program* program; };  // out: program
struct LoadedExecutable_Delete_Args : Record { LoadedExecutable* executable; };
struct LoadedExecutable_IsDeleted_Args : Record { LoadedExecutable* executable; bool is_deleted; };  // out: is_deleted
struct LoadedExecutable_Execute_Args : Record {  // out: output_lists, device_complete_events
  LoadedExecutable* executable; ExecuteOptions* options; Buffer* const* const* argument_lists; size_t num_devices;
  size_t num_args; Buffer** const* output_lists; Event** device_complete_events; Device* execute_device;
};
struct Executable_NumOutputs_Args : Record { Executable* executable; size_t num_outputs; };  // out: num_outputs
struct Executable_SizeOfGeneratedCodeInBytes_Args : Record { Executable* executable; int64_t size_in_bytes; };  // out: size_in_bytes
struct Executable_Fingerprint_Args : Record {  // out: executable_fingerprint, executable_fingerprint_size
  Executable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size;
};
struct Executable_GetCostAnalysis_Args : Record {  // out: num_properties, properties
  Executable* executable; size_t num_properties; const NamedValue* properties;
};
struct Executable_GetCompiledMemoryStats_Args : Record {  // out: all but executable
  Executable* executable; int64_t generated_code_size_in_bytes; int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes; int64_t alias_size_in_bytes; int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes; int64_t host_argument_size_in_bytes; int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes; int64_t host_temp_size_in_bytes; int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
};
struct Executable_OutputElementTypes_Args : Record {  // out: output_types, num_output_types
  Executable* executable; Buffer_Type* output_types; size_t num_output_types;
};
struct Executable_OutputDimensions_Args : Record {  // out: dims, dim_sizes
  Executable* executable; size_t num_outputs; const int64_t* dims; const size_t* dim_sizes;
};
struct Executable_OutputMemoryKinds_Args : Record {  // out: memory_kinds, memory_kind_sizes
  Executable* executable; size_t num_outputs; const char* const* memory_kinds; const size_t* memory_kind_sizes;
};
struct Executable_Serialize_Args : Record {  // out: serialized_bytes, serialized_bytes_size
  const Executable* executable; const char* serialized_bytes; size_t serialized_bytes_size;
  SerializedExecutable* serialized_executable; void (*serialized_executable_deleter)(SerializedExecutable* exec);
};
struct Executable_GetCompileOptions_Args : Record {  // out: serialized_bytes, serialized_bytes_size
  Executable* executable; const char* serialized_bytes; size_t serialized_bytes_size;
  SerializedCompileOptions* serialized_compile_options;
  void (*serialized_compile_options_deleter)(SerializedCompileOptions* options);
};
struct Executable_DeserializeAndLoad_Args : Record {  // out: loaded_executable
  Client* client; const char* serialized_executable; size_t serialized_executable_size;
  LoadedExecutable* loaded_executable; const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
};
struct LoadedExecutable_Fingerprint_Args : Record {  // out: executable_fingerprint, executable_fingerprint_size
  LoadedExecutable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size;
};

// Buffers.
struct Buffer_Destroy_Args : Record { Buffer* buffer; };
struct Buffer_ElementType_Args : Record { Buffer* buffer; Buffer_Type type; };  // out: type
struct Buffer_Dimensions_Args : Record { Buffer* buffer; const int64_t* dims; size_t num_dims; };  // out: dims, num_dims
struct Buffer_UnpaddedDimensions_Args : Record {  // out: unpadded_dims, num_dims
  Buffer* buffer; const int64_t* unpadded_dims; size_t num_dims;
};
struct Buffer_DynamicDimensionIndices_Args : Record {  // out: dynamic_dim_indices, num_dynamic_dims
  Buffer* buffer; const size_t* dynamic_dim_indices; size_t num_dynamic_dims;
};
struct Buffer_GetMemoryLayout_Args : Record { Buffer* buffer; Buffer_MemoryLayout layout; };  // out: layout
struct Buffer_ToHostBuffer_Args : Record {  // out: dst, dst_size, event
  Buffer* src; Buffer_MemoryLayout* host_layout; void* dst; size_t dst_size; Event* event;
};
struct Buffer_OnDeviceSizeInBytes_Args : Record { Buffer* buffer; size_t on_device_size_in_bytes; };  // out: on_device_size_in_bytes
struct Buffer_Delete_Args : Record { Buffer* buffer; };
struct Buffer_IsDeleted_Args : Record { Buffer* buffer; bool is_deleted; };  // out: is_deleted
struct Buffer_CopyRawToHost_Args : Record {  // out: event
  Buffer* buffer; void* dst; int64_t offset; int64_t transfer_size; Event* event;
};
struct Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size; void* callback_data; Error_Code error_code; const char* error_message;
  size_t error_message_size; void* dst;
};
struct Buffer_CopyRawToHostFuture_Args : Record {  // out: event, callback_data
  Buffer* buffer; int64_t offset; int64_t transfer_size; Event* event; void* callback_data;
  void (*future_ready_callback)(Buffer_CopyRawToHostFuture_Callback_Args* args);
};
struct Buffer_CopyToDevice_Args : Record { Buffer* buffer; Device* dst_device; Buffer* dst_buffer; };  // out: dst_buffer
struct Buffer_CopyToMemory_Args : Record { Buffer* buffer; Memory* dst_memory; Buffer* dst_buffer; };  // out: dst_buffer
struct Buffer_IsOnCpu_Args : Record { Buffer* buffer; bool is_on_cpu; };  // out: is_on_cpu
struct Buffer_Device_Args : Record { Buffer* buffer; Device* device; };  // out: device
struct Buffer_Memory_Args : Record { Buffer* buffer; Memory* memory; };  // out: memory
struct Buffer_ReadyEvent_Args : Record { Buffer* buffer; Event* event; };  // out: event
struct Buffer_UnsafePointer_Args : Record { Buffer* buffer; uintptr_t buffer_pointer; };  // out: buffer_pointer
struct Buffer_IncreaseExternalReferenceCount_Args : Record { Buffer* buffer; };
struct Buffer_DecreaseExternalReferenceCount_Args : Record { Buffer* buffer; };
struct Buffer_OpaqueDeviceMemoryDataPointer_Args : Record { Buffer* buffer; void* device_memory_ptr; };  // out: device_memory_ptr
struct Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size; void* callback_data; Error_Code error_code; const char* error_message;
  size_t error_message_size;
};
struct Buffer_DonateWithControlDependency_Args : Record {  // out: callback_data, out_buffer
  Buffer* buffer; void* callback_data;
  void (*dependency_ready_callback)(Buffer_DonateWithControlDependency_Callback_Args* args); Buffer* out_buffer;
};

}  // namespace trivium::pjrt
