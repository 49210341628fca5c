// A host without Python: loads the plugin, runs a serialized executable on one array of f32, and writes its first result. Or, for several
// executables, reports why each is rejected.
//
//   run_artifact plugin.so input output executable
//   run_artifact plugin.so --load executable...

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "pjrt/abi/table.h"

namespace {

using namespace trivium::pjrt;

const Api* api;

std::string Text(Error* error) {
  Error_Message_Args message{{sizeof(message), nullptr}, error, nullptr, 0};
  api->Error_Message(&message);
  std::string text(message.message, message.message_size);
  for (char& letter : text) letter = letter < ' ' || letter > '~' ? '?' : letter;  // it may quote damaged bytes
  Error_Destroy_Args destroy{{sizeof(destroy), nullptr}, error};
  api->Error_Destroy(&destroy);
  return text;
}

template <class Args>
Args Call(Error* (*function)(Args*), Args args) {
  args.struct_size = sizeof(Args);
  if (Error* error = function(&args)) {
    std::fprintf(stderr, "%s\n", Text(error).c_str());
    std::exit(2);
  }
  return args;
}

std::string Contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Executable_DeserializeAndLoad_Args Request(Client* client, const std::string& bytes) {
  Executable_DeserializeAndLoad_Args args{};
  args.struct_size = sizeof(args);
  args.client = client;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  return args;
}

void TryAll(Client* client, char** paths) {
  for (; *paths != nullptr; ++paths) {
    const std::string bytes = Contents(*paths);
    Executable_DeserializeAndLoad_Args args = Request(client, bytes);
    Error* error = api->Executable_DeserializeAndLoad(&args);
    std::printf("%s\n", error == nullptr ? "loaded" : Text(error).c_str());
    if (error == nullptr) Call(api->LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, args.loaded_executable});
  }
}

Buffer* Run(Client* client, LoadedExecutable* executable, const std::string& input) {
  const auto size = static_cast<int64_t>(input.size() / sizeof(float));
  Client_BufferFromHostBuffer_Args given{};
  given.client = client;
  given.data = input.data();
  given.type = Buffer_Type_F32;
  given.dims = &size;
  given.num_dims = 1;
  given.host_buffer_semantics = HostBufferSemantics_kImmutableOnlyDuringCall;
  Buffer* argument = Call(api->Client_BufferFromHostBuffer, given).buffer;
  Buffer *const *list = &argument;
  Buffer* results[8] = {};
  Buffer** result = results;
  LoadedExecutable_Execute_Args run{};
  run.executable = executable;
  run.argument_lists = &list;
  run.num_devices = 1;
  run.num_args = 1;
  run.output_lists = &result;
  Call(api->LoadedExecutable_Execute, run);
  return results[0];
}

void Write(const char* path, Buffer* buffer) {
  Buffer_ToHostBuffer_Args size{};
  size.src = buffer;
  size = Call(api->Buffer_ToHostBuffer, size);
  std::vector<char> data(size.dst_size);
  Buffer_ToHostBuffer_Args copy{};
  copy.src = buffer;
  copy.dst = data.data();
  copy.dst_size = data.size();
  Call(api->Buffer_ToHostBuffer, copy);
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
}

}  // namespace

int main(int count, char** arguments) {
  void* library = count < 4 ? nullptr : dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "no plugin: %s\n", count < 4 ? "see the source for how to call this" : dlerror());
    return 1;
  }
  api = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  Client* client = Call(api->Client_Create, Client_Create_Args{}).client;
  if (std::strcmp(arguments[2], "--load") == 0) {
    TryAll(client, arguments + 3);
    return 0;
  }
  const std::string bytes = Contents(arguments[4]);
  LoadedExecutable* executable = Call(api->Executable_DeserializeAndLoad, Request(client, bytes)).loaded_executable;
  Write(arguments[3], Run(client, executable, Contents(arguments[2])));
  Executable* program = Call(api->LoadedExecutable_GetExecutable, LoadedExecutable_GetExecutable_Args{{}, executable, nullptr}).executable;
  Executable_Serialize_Args again{};
  again.executable = program;
  again = Call(api->Executable_Serialize, again);
  const bool same = std::string(again.serialized_bytes, again.serialized_bytes_size) == bytes;
  again.serialized_executable_deleter(again.serialized_executable);
  std::printf("%s\n", same ? "serialized as it was" : "serialized otherwise");
  return 0;
}
