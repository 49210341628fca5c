// A host that is no Python program: loads the plugin, runs a serialized executable on one array of f32, and writes its first result. Or
// compiles a program, writes it as an executable, and runs that; `python` is the client's option of that name. Or, for several executables,
// reports why each is rejected.
//
//   run_artifact plugin.so input output executable
//   run_artifact plugin.so --compile program executable input output [python]
//   run_artifact plugin.so --load executable...

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
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

std::string Serialized(LoadedExecutable* loaded) {
  Executable* executable = Call(api->LoadedExecutable_GetExecutable, LoadedExecutable_GetExecutable_Args{{}, loaded, nullptr}).executable;
  Executable_Serialize_Args args{};
  args.executable = executable;
  args = Call(api->Executable_Serialize, args);
  const std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  Call(api->Executable_Destroy, Executable_Destroy_Args{{}, executable});
  return bytes;
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

Client* NewClient(const char* python) {
  Client_Create_Args args{};
  NamedValue option{};
  option.struct_size = sizeof(option);
  option.name = "python";
  option.name_size = 6;
  option.type = NamedValue_kString;
  option.string_value = python;
  if (python != nullptr) {
    option.value_size = std::strlen(python);
    args.create_options = &option;
    args.num_options = 1;
  }
  return Call(api->Client_Create, args).client;
}

// Compiles in a thread that is not the process's first.
void CompileAndRun(Client* client, char** paths) {
  std::string code = Contents(paths[0]);
  const Program program{{sizeof(Program), nullptr}, code.data(), code.size(), "mlir", 4};
  LoadedExecutable* executable = nullptr;
  std::thread([&] { executable = Call(api->Client_Compile, Client_Compile_Args{{}, client, &program, nullptr, 0, nullptr}).executable; }).join();
  std::ofstream(paths[1], std::ios::binary) << Serialized(executable);
  Write(paths[3], Run(client, executable, Contents(paths[2])));
  Call(api->LoadedExecutable_Destroy, LoadedExecutable_Destroy_Args{{}, executable});
}

}  // namespace

int main(int count, char** arguments) {
  void* library = count < 4 ? nullptr : dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "no plugin: %s\n", count < 4 ? "see the source for how to call this" : dlerror());
    return 1;
  }
  api = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  const bool compiles = std::strcmp(arguments[2], "--compile") == 0;
  Client* client = NewClient(compiles && count == 8 ? arguments[7] : nullptr);
  if (compiles) {
    CompileAndRun(client, arguments + 3);
    return 0;
  }
  if (std::strcmp(arguments[2], "--load") == 0) {
    TryAll(client, arguments + 3);
    return 0;
  }
  const std::string bytes = Contents(arguments[4]);
  LoadedExecutable* executable = Call(api->Executable_DeserializeAndLoad, Request(client, bytes)).loaded_executable;
  Write(arguments[3], Run(client, executable, Contents(arguments[2])));
  std::printf("%s\n", Serialized(executable) == bytes ? "serialized as it was" : "serialized otherwise");
  return 0;
}
