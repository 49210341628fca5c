// PJRT's C ABI, version 0.93: the values that its functions exchange. Names are the C header's without their prefix `PJRT_`, order and types
// are its own, and tests/backends/native/test_abi.py compares all of it with a published header.

#pragma once

#include <cstddef>
#include <cstdint>

namespace trivium::pjrt {

constexpr int kMajorVersion = 0;
constexpr int kMinorVersion = 93;

// Objects of the implementation, which callers know only by their addresses.
struct Error;
struct Event;
struct Client;
struct Device;
struct Memory;
struct DeviceDescription;
struct TopologyDescription;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct FulfillAliasBufferCallback;
struct AsyncHostToDeviceTransferManager;
struct AsyncTrackingEvent;
struct ExecuteContext;
struct DeviceAssignmentSerialized;
struct CopyToDeviceStream;
struct SerializedExecutable;
struct SerializedCompileOptions;
struct SerializedTopology;
struct Device_Attributes;

enum Extension_Type : int32_t {
  Extension_Type_Gpu_Custom_Call, Extension_Type_Profiler, Extension_Type_Custom_Partitioner, Extension_Type_Stream,
  Extension_Type_Layouts, Extension_Type_FFI, Extension_Type_MemoryDescriptions, Extension_Type_Triton, Extension_Type_RawBuffer,
  Extension_Type_PhaseCompile, Extension_Type_Example, Extension_Type_Unknown, Extension_Type_CrossHostTransfers,
  Extension_Type_ExecutableMetadata, Extension_Type_Callback, Extension_Type_HostAllocator, Extension_Type_TpuTopology,
  Extension_Type_TpuExecutable, Extension_Type_Megascale, Extension_Type_Shardings,
};

enum Error_Code : int32_t {
  Error_Code_OK, Error_Code_CANCELLED, Error_Code_UNKNOWN, Error_Code_INVALID_ARGUMENT, Error_Code_DEADLINE_EXCEEDED,
  Error_Code_NOT_FOUND, Error_Code_ALREADY_EXISTS, Error_Code_PERMISSION_DENIED, Error_Code_RESOURCE_EXHAUSTED,
  Error_Code_FAILED_PRECONDITION, Error_Code_ABORTED, Error_Code_OUT_OF_RANGE, Error_Code_UNIMPLEMENTED, Error_Code_INTERNAL,
  Error_Code_UNAVAILABLE, Error_Code_DATA_LOSS, Error_Code_UNAUTHENTICATED,
};

enum NamedValue_Type : int32_t {
  NamedValue_kString, NamedValue_kInt64, NamedValue_kInt64List, NamedValue_kFloat, NamedValue_kBool,
};

enum ProcessState : int32_t {
  ProcessState_kUnspecified, ProcessState_kUninitialized, ProcessState_kDisconnected, ProcessState_kConnected, ProcessState_kError,
};

enum Buffer_Type : int32_t {
  Buffer_Type_INVALID, Buffer_Type_PRED, Buffer_Type_S8, Buffer_Type_S16, Buffer_Type_S32, Buffer_Type_S64, Buffer_Type_U8,
  Buffer_Type_U16, Buffer_Type_U32, Buffer_Type_U64, Buffer_Type_F16, Buffer_Type_F32, Buffer_Type_F64, Buffer_Type_BF16,
  Buffer_Type_C64, Buffer_Type_C128, Buffer_Type_F8E5M2, Buffer_Type_F8E4M3FN, Buffer_Type_F8E4M3B11FNUZ, Buffer_Type_F8E5M2FNUZ,
  Buffer_Type_F8E4M3FNUZ, Buffer_Type_S4, Buffer_Type_U4, Buffer_Type_TOKEN, Buffer_Type_S2, Buffer_Type_U2, Buffer_Type_F8E4M3,
  Buffer_Type_F8E3M4, Buffer_Type_F8E8M0FNU, Buffer_Type_F4E2M1FN,
};

enum HostBufferSemantics : int32_t {
  HostBufferSemantics_kImmutableOnlyDuringCall, HostBufferSemantics_kImmutableUntilTransferCompletes,
  HostBufferSemantics_kImmutableZeroCopy, HostBufferSemantics_kMutableZeroCopy,
};

enum Buffer_MemoryLayout_Type : int32_t {
  Buffer_MemoryLayout_Type_Tiled, Buffer_MemoryLayout_Type_Strides,
};

struct Extension_Base {
  size_t struct_size; Extension_Type type; Extension_Base* next;
};

// The common beginning of every record: how many bytes of it its writer knows, and a chain of extensions.
struct Record {
  size_t struct_size;
  Extension_Base* extension_start;
};

struct Api_Version : Record { int major_version; int minor_version; };  // out: major_version, minor_version

struct NamedValue : Record {
  const char* name; size_t name_size; NamedValue_Type type;
  union { const char* string_value; int64_t int64_value; const int64_t* int64_array_value; float float_value; bool bool_value; };
  size_t value_size;
};

struct Program : Record { char* code; size_t code_size; const char* format; size_t format_size; };  // out: code

struct ShapeSpec : Record { const int64_t* dims; size_t num_dims; Buffer_Type element_type; };

struct Buffer_MemoryLayout_Tiled : Record {
  const int64_t* minor_to_major; size_t minor_to_major_size; const int64_t* tile_dims; const size_t* tile_dim_sizes;
  size_t num_tiles;
};

struct Buffer_MemoryLayout_Strides : Record { const int64_t* byte_strides; size_t num_byte_strides; };

struct Buffer_MemoryLayout : Record {
  union { Buffer_MemoryLayout_Tiled tiled; Buffer_MemoryLayout_Strides strides; };
  Buffer_MemoryLayout_Type type;
};

struct ProcessInfo {
  size_t struct_size; int task_id; uint64_t incarnation_id; ProcessState state; int error_code;
  const char* error_message; size_t error_message_size;
};

struct Chunk { void* data; size_t size; void (*deleter)(void* data, void* deleter_arg); void* deleter_arg; };

// Functions of the caller.
using CallbackError = Error* (*)(Error_Code code, const char* message, size_t message_size);
using Event_OnReadyCallback = void (*)(Error* error, void* user_arg);
using SendCallback = Error* (*)(Chunk* chunk, CallbackError* callback_error, size_t total_size_in_bytes, bool done, void* user_arg);
using RecvCallback = void (*)(CopyToDeviceStream* stream, void* user_arg);

struct SendCallbackInfo { int64_t channel_id; void* user_arg; SendCallback send_callback; };

struct RecvCallbackInfo { int64_t channel_id; void* user_arg; RecvCallback recv_callback; };

struct ExecuteOptions : Record {
  SendCallbackInfo** send_callbacks; RecvCallbackInfo** recv_callbacks; size_t num_send_ops; size_t num_recv_ops;
  int launch_id; const int64_t* non_donatable_input_indices; size_t num_non_donatable_input_indices;
  ExecuteContext* context; const char* call_location; size_t num_tasks; int* task_ids; int64_t* incarnation_ids;
};

// The store of keys and values that processes of one distributed program share.
using KeyValueGetCallback_ValueDeleter = void (*)(char* value);
using KeyValueTryGetCallback_ValueDeleter = void (*)(char* value);
struct KeyValueGetCallback_Args : Record {  // out: value, value_size, value_deleter_callback
  const char* key; size_t key_size; int timeout_in_ms; CallbackError* callback_error; void* user_arg; char* value;
  size_t value_size; KeyValueGetCallback_ValueDeleter value_deleter_callback;
};
struct KeyValueTryGetCallback_Args : Record {  // out: value, value_size, value_deleter_callback
  const char* key; size_t key_size; CallbackError* callback_error; void* user_arg; char* value; size_t value_size;
  KeyValueTryGetCallback_ValueDeleter value_deleter_callback;
};
struct KeyValuePutCallback_Args : Record {
  const char* key; size_t key_size; const char* value; size_t value_size; CallbackError* callback_error;
  void* user_arg;
};
using KeyValueGetCallback = Error* (*)(KeyValueGetCallback_Args* args);
using KeyValueTryGetCallback = Error* (*)(KeyValueTryGetCallback_Args* args);
using KeyValuePutCallback = Error* (*)(KeyValuePutCallback_Args* args);

}  // namespace trivium::pjrt
