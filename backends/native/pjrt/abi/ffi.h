// The C ABI of XLA's typed foreign functions, version 0.3: the interface through which custom calls reach handlers that others compiled,
// such as JAX's LAPACK. Names are the C header's without their prefix `XLA_FFI_`; tests/backends/native/test_abi.py compares all of it with
// the header in jaxlib.

#pragma once

#include <cstddef>
#include <cstdint>

namespace trivium::ffi {

constexpr int kMajorVersion = 0;
constexpr int kMinorVersion = 3;
constexpr int kFirstWithStages = 3;  // the minor version from which on states are those of a stage

// Objects of the implementation.
struct Error;
struct ExecutionContext;
struct Future;
struct InternalApi;

enum Extension_Type : int32_t { Extension_Metadata = 1 };

enum Error_Code : int32_t { Error_Code_OK, Error_Code_UNIMPLEMENTED = 12 };

enum DataType : int32_t {};

enum AttrType : int32_t { AttrType_ARRAY = 1, AttrType_DICTIONARY, AttrType_SCALAR, AttrType_STRING };

enum ArgType : int32_t { ArgType_BUFFER = 1 };

enum RetType : int32_t { RetType_BUFFER = 1 };

enum ExecutionStage : int32_t {
  ExecutionStage_INSTANTIATE, ExecutionStage_PREPARE, ExecutionStage_INITIALIZE, ExecutionStage_EXECUTE,
};

struct Extension_Base { size_t struct_size; Extension_Type type; Extension_Base* next; };

// The common beginning of every record.
struct Record { size_t struct_size; Extension_Base* extension_start; };

struct Api_Version : Record { int major_version; int minor_version; };

struct Buffer : Record { DataType dtype; void* data; int64_t rank; int64_t* dims; };

struct ByteSpan { const char* ptr; size_t len; };
struct Scalar { DataType dtype; void* value; };
struct Array { DataType dtype; size_t size; void* data; };
struct TypeId { int64_t type_id; };
struct TypeInfo : Record { void (*deleter)(void* object); };

struct Args : Record { int64_t size; ArgType* types; void** args; };
struct Rets : Record { int64_t size; RetType* types; void** rets; };
struct Attrs : Record { int64_t size; AttrType* types; ByteSpan** names; void** attrs; };

struct Api;

struct CallFrame : Record {
  const Api* api; ExecutionContext* ctx; ExecutionStage stage;
  Args args; Rets rets; Attrs attrs;
  Future* future;  // out
};

using Handler = Error*(CallFrame*);
struct Handler_Bundle { Handler* instantiate; Handler* prepare; Handler* initialize; Handler* execute; };

struct Metadata { size_t struct_size; Api_Version api_version; uint32_t traits; TypeId state_type_id; };
struct Metadata_Extension { Extension_Base extension_base; Metadata* metadata; };

struct Error_Create_Args : Record { const char* message; Error_Code errc; };
struct Error_GetMessage_Args : Record { Error* error; const char* message; };  // out: message
struct Error_Destroy_Args : Record { Error* error; };
struct Handler_Register_Args : Record { ByteSpan name; ByteSpan platform; Handler_Bundle bundle; uint32_t traits; };
struct Stream_Get_Args : Record { ExecutionContext* ctx; void* stream; };  // out: stream
struct Type_Register_Args : Record { ByteSpan name; TypeId* type_id; const TypeInfo* type_info; };
struct ExecutionContext_Get_Args : Record { ExecutionContext* ctx; TypeId* type_id; void* data; };  // out: data
struct State_Set_Args : Record { ExecutionContext* ctx; ExecutionStage stage; TypeId* type_id; void* state; };
struct State_Get_Args : Record { ExecutionContext* ctx; ExecutionStage stage; TypeId* type_id; void* state; };  // out: state
// Until version 0.2, only the first stage had a state, and the records did not say which.
struct OldState_Args : Record { ExecutionContext* ctx; TypeId* type_id; void* state; };
struct DeviceMemory_Allocate_Args : Record { ExecutionContext* ctx; size_t size; size_t alignment; void* data; };  // out: data
struct DeviceMemory_Free_Args : Record { ExecutionContext* ctx; size_t size; void* data; };
struct ThreadPool_Schedule_Args : Record { ExecutionContext* ctx; void (*task)(void* data); void* data; };
struct ThreadPool_NumThreads_Args : Record { ExecutionContext* ctx; int64_t* num_threads; };
struct Future_Create_Args : Record { Future* future; };  // out: future
struct Future_SetAvailable_Args : Record { Future* future; };
struct Future_SetError_Args : Record { Future* future; Error* error; };
struct RunId_Get_Args : Record { ExecutionContext* ctx; int64_t run_id; };  // out: run_id
struct DeviceOrdinal_Get_Args : Record { ExecutionContext* ctx; int32_t device_ordinal; };  // out: device_ordinal

struct Api : Record {
  Api_Version api_version;
  const InternalApi* internal_api;
  Error* (*Error_Create)(Error_Create_Args*);
  void (*Error_GetMessage)(Error_GetMessage_Args*);
  void (*Error_Destroy)(Error_Destroy_Args*);
  Error* (*Handler_Register)(Handler_Register_Args*);
  Error* (*Stream_Get)(Stream_Get_Args*);
  Error* (*Type_Register)(Type_Register_Args*);
  Error* (*ExecutionContext_Get)(ExecutionContext_Get_Args*);
  Error* (*State_Set)(State_Set_Args*);
  Error* (*State_Get)(State_Get_Args*);
  Error* (*DeviceMemory_Allocate)(DeviceMemory_Allocate_Args*);
  Error* (*DeviceMemory_Free)(DeviceMemory_Free_Args*);
  Error* (*ThreadPool_Schedule)(ThreadPool_Schedule_Args*);
  Error* (*ThreadPool_NumThreads)(ThreadPool_NumThreads_Args*);
  Error* (*Future_Create)(Future_Create_Args*);
  Error* (*Future_SetAvailable)(Future_SetAvailable_Args*);
  Error* (*Future_SetError)(Future_SetError_Args*);
  Error* (*RunId_Get)(RunId_Get_Args*);
  Error* (*DeviceOrdinal_Get)(DeviceOrdinal_Get_Args*);
};

}  // namespace trivium::ffi
