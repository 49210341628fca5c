#include "foreign_api.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "error.h"
#include "foreign_registry.h"

namespace trivium::ffi {
namespace {

Error* Refused(const char* what) { return new Error{std::string(what) + " is not supported on this device", Error_Code_UNIMPLEMENTED}; }

Error* ErrorCreate(Error_Create_Args* args) { return new Error{args->message == nullptr ? "" : args->message, args->errc}; }

void ErrorGetMessage(Error_GetMessage_Args* args) { args->message = args->error->message.c_str(); }

void ErrorDestroy(Error_Destroy_Args* args) { delete args->error; }

// Handlers are registered with the host, which registers none with us.
Error* HandlerRegister(Handler_Register_Args*) { return Refused("registering a handler while a program runs"); }

Error* StreamGet(Stream_Get_Args*) { return Refused("a stream"); }

Error* TypeRegister(Type_Register_Args* args) {
  auto error = pjrt::ErrorOf([args] {
    const std::string_view name = pjrt::View(args->name.ptr, args->name.len);
    RegisterType(name, args->type_id->type_id, args->type_info == nullptr ? nullptr : args->type_info->deleter);
  });
  return error ? new Error{std::move(error->message), error->code} : nullptr;
}

Error* ExecutionContextGet(ExecutionContext_Get_Args* args) {
  args->data = nullptr;
  if (const UserData* known = args->ctx->user_data) {
    const auto found = known->find(args->type_id->type_id);
    if (found != known->end()) args->data = found->second;
  }
  return args->data != nullptr ? nullptr : new Error{"the run was given no data of this type", pjrt::Error_Code_NOT_FOUND};
}

bool IsStage(ExecutionStage stage) { return stage >= ExecutionStage_INSTANTIATE && stage <= ExecutionStage_EXECUTE; }

template <class Args>
bool IsOld(const Args& args) {
  return args.struct_size < sizeof(Args);
}

Error* SetState(ExecutionContext& context, ExecutionStage stage, const TypeId& type, void* object) {
  if (!IsStage(stage) || context.states[stage].object != nullptr) return Refused("a second state of a stage");
  context.states[stage] = {object, DeleterOf(type.type_id)};
  return nullptr;
}

Error* StateSet(State_Set_Args* args) {
  if (!IsOld(*args)) return SetState(*args->ctx, args->stage, *args->type_id, args->state);
  const auto& old = *reinterpret_cast<const OldState_Args*>(args);
  return SetState(*old.ctx, ExecutionStage_INSTANTIATE, *old.type_id, old.state);
}

Error* GetState(const ExecutionContext& context, ExecutionStage stage, void*& object) {
  object = IsStage(stage) ? context.states[stage].object : nullptr;
  return object != nullptr ? nullptr : Refused("a state that no stage has set");
}

Error* StateGet(State_Get_Args* args) {
  if (!IsOld(*args)) return GetState(*args->ctx, args->stage, args->state);
  auto& old = *reinterpret_cast<OldState_Args*>(args);
  return GetState(*old.ctx, ExecutionStage_INSTANTIATE, old.state);
}

Error* DeviceMemoryAllocate(DeviceMemory_Allocate_Args* args) {
  const size_t alignment = std::max<size_t>(args->alignment, 64);
  args->data = std::aligned_alloc(alignment, (args->size / alignment + 1) * alignment);
  return args->data != nullptr ? nullptr : new Error{"out of memory", pjrt::Error_Code_RESOURCE_EXHAUSTED};
}

Error* DeviceMemoryFree(DeviceMemory_Free_Args* args) {
  std::free(args->data);
  return nullptr;
}

// Runs the task immediately: a handler that waits for its tasks then finds them finished.
Error* ThreadPoolSchedule(ThreadPool_Schedule_Args* args) {
  args->task(args->data);
  return nullptr;
}

Error* ThreadPoolNumThreads(ThreadPool_NumThreads_Args* args) {
  *args->num_threads = 1;
  return nullptr;
}

Error* FutureCreate(Future_Create_Args* args) {
  args->future = new Future;
  return nullptr;
}

Error* FutureSetAvailable(Future_SetAvailable_Args* args) {
  const pjrt::CompletionPtr completion = args->future->completion;  // whoever waits for the future deletes it
  completion->Finish();
  return nullptr;
}

Error* FutureSetError(Future_SetError_Args* args) {
  const pjrt::CompletionPtr completion = args->future->completion;
  completion->Finish(pjrt::Error{static_cast<pjrt::Error_Code>(args->error->code), args->error->message});
  delete args->error;
  return nullptr;
}

Error* RunIdGet(RunId_Get_Args* args) {
  static std::atomic<int64_t> last{0};
  args->run_id = ++last;
  return nullptr;
}

Error* DeviceOrdinalGet(DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = 0;
  return nullptr;
}

Api MakeApi() {
  Api api{};
  api.struct_size = sizeof(Api);
  api.api_version.struct_size = sizeof(Api_Version);
  api.api_version.major_version = kMajorVersion;
  api.api_version.minor_version = kMinorVersion;
  api.Error_Create = ErrorCreate;
  api.Error_GetMessage = ErrorGetMessage;
  api.Error_Destroy = ErrorDestroy;
  api.Handler_Register = HandlerRegister;
  api.Stream_Get = StreamGet;
  api.Type_Register = TypeRegister;
  api.ExecutionContext_Get = ExecutionContextGet;
  api.State_Set = StateSet;
  api.State_Get = StateGet;
  api.DeviceMemory_Allocate = DeviceMemoryAllocate;
  api.DeviceMemory_Free = DeviceMemoryFree;
  api.ThreadPool_Schedule = ThreadPoolSchedule;
  api.ThreadPool_NumThreads = ThreadPoolNumThreads;
  api.Future_Create = FutureCreate;
  api.Future_SetAvailable = FutureSetAvailable;
  api.Future_SetError = FutureSetError;
  api.RunId_Get = RunIdGet;
  api.DeviceOrdinal_Get = DeviceOrdinalGet;
  return api;
}

}  // namespace

const Api& ForeignApi() {
  static const Api api = MakeApi();
  return api;
}

}  // namespace trivium::ffi
