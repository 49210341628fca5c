// What the stress tests of PJRT's table share: calls of its functions, as a host makes them.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pjrt/abi/table.h"
#include "pjrt/program.h"

extern "C" {
const trivium::pjrt::Api* GetPjrtApi();
void trivium_pjrt_set_compiler(trivium::pjrt::CompileFunction compile, trivium::pjrt::ReleaseFunction release);
void trivium_pjrt_fail(void* failure, const char* message, size_t size);
void trivium_pjrt_finish();
}

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (false)

namespace trivium::pjrt::host {

inline const Api& api = *GetPjrtApi();

// Returns the code of an error, which is freed, and the message if it is requested.
inline Error_Code CodeOf(Error* error, std::string* text = nullptr) {
  if (error == nullptr) return Error_Code_OK;
  Error_GetCode_Args code{{sizeof(code), nullptr}, error, Error_Code_OK};
  Error_Message_Args message{{sizeof(message), nullptr}, error, nullptr, 0};
  EXPECT(api.Error_GetCode(&code) == nullptr);
  api.Error_Message(&message);
  if (text != nullptr) text->assign(message.message, message.message_size);
  Error_Destroy_Args destroy{{sizeof(destroy), nullptr}, error};
  api.Error_Destroy(&destroy);
  return code.code;
}

// Calls a function of the table that must not fail; returns its arguments.
template <class Args>
Args Call(Error* (*function)(Args*), Args args) {
  args.struct_size = sizeof(Args);
  EXPECT(CodeOf(function(&args)) == Error_Code_OK);
  return args;
}

template <class Args>
Error_Code Refusal(Error* (*function)(Args*), Args args, std::string* text = nullptr) {
  args.struct_size = sizeof(Args);
  return CodeOf(function(&args), text);
}

constexpr int64_t kSize = 100;

inline LoadedExecutable* Compile(Client* client, std::string code) {
  const Program program{{sizeof(Program), nullptr}, code.data(), code.size(), "mlir", 4};
  return Call(api.Client_Compile, Client_Compile_Args{{}, client, &program, nullptr, 0, nullptr}).executable;
}

inline Buffer* NewBuffer(Client* client, float first, int64_t size = kSize) {
  const std::vector<float> data(size, first);
  Client_BufferFromHostBuffer_Args args{};
  args.client = client;
  args.data = data.data();
  args.type = Buffer_Type_F32;
  args.dims = &size;
  args.num_dims = 1;
  args.host_buffer_semantics = HostBufferSemantics_kImmutableOnlyDuringCall;
  args = Call(api.Client_BufferFromHostBuffer, args);
  Call(api.Event_Destroy, Event_Destroy_Args{{}, args.done_with_host_buffer});
  return args.buffer;
}

inline void DestroyBuffer(Buffer* buffer) { Call(api.Buffer_Destroy, Buffer_Destroy_Args{{}, buffer}); }

// Returns what the call returns; `done` is the event of the run.
inline Error_Code Launch(LoadedExecutable* executable, std::vector<Buffer*> arguments, Buffer** result, Event** done, std::string* text = nullptr) {
  Buffer* const* list = arguments.data();
  LoadedExecutable_Execute_Args args{};
  args.executable = executable;
  args.argument_lists = &list;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = &result;
  args.device_complete_events = done;
  return Refusal(api.LoadedExecutable_Execute, args, text);
}

// Waits for the event, which is then destroyed, and returns its error.
inline Error_Code Awaited(Event* event, std::string* text = nullptr) {
  const Error_Code code = Refusal(api.Event_Await, Event_Await_Args{{}, event}, text);
  Call(api.Event_Destroy, Event_Destroy_Args{{}, event});
  return code;
}

// Runs, and waits. There is a result only if there is no error.
inline Error_Code Execute(LoadedExecutable* executable, std::vector<Buffer*> arguments, Buffer** result, std::string* text = nullptr) {
  Event* done = nullptr;
  if (const Error_Code code = Launch(executable, std::move(arguments), result, &done, text)) return code;
  const Error_Code code = Awaited(done, text);
  if (code != Error_Code_OK) DestroyBuffer(*result);
  return code;
}

inline uintptr_t AddressOf(Buffer* buffer) { return Call(api.Buffer_UnsafePointer, Buffer_UnsafePointer_Args{{}, buffer, 0}).buffer_pointer; }

inline void ExpectElements(Buffer* buffer, float expected) {
  std::vector<float> data(kSize);
  Buffer_ToHostBuffer_Args args{};
  args.src = buffer;
  args.dst = data.data();
  args.dst_size = data.size() * sizeof(float);
  args = Call(api.Buffer_ToHostBuffer, args);
  EXPECT(Awaited(args.event) == Error_Code_OK);
  for (const float element : data) EXPECT(element == expected);
}

}  // namespace trivium::pjrt::host
