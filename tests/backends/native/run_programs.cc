// A host without Python: loads the plugin, and runs serialized executables, each in a folder of its own.
//
//   run_programs plugin.so folder...
//
// A folder has `executable`, `arguments` (for each argument a line: the number of its type, then its extents) and the
// elements of each, `argument0` and so on. Results are written to `result0` and so on; a failure, to `error`.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "pjrt/abi/table.h"

namespace {

using namespace trivium::pjrt;

const Api* api;

void Require(Error* error) {
  if (error == nullptr) return;
  Error_Message_Args message{{sizeof(message), nullptr}, error, nullptr, 0};
  api->Error_Message(&message);
  const std::string text(message.message, message.message_size);
  Error_Destroy_Args destroy{{sizeof(destroy), nullptr}, error};
  api->Error_Destroy(&destroy);
  throw std::runtime_error(text);
}

template <class Args>
Args Call(Error* (*function)(Args*), Args args) {
  args.struct_size = sizeof(Args);
  Require(function(&args));
  return args;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const std::string& path, const std::string& data) {
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
}

void Await(Event* event) {
  Call(api->Event_Await, Event_Await_Args{{}, event});
  Call(api->Event_Destroy, Event_Destroy_Args{{}, event});
}

Buffer* Argument(Client* client, const std::string& description, const std::string& elements) {
  std::istringstream words(description);
  int type = 0;
  words >> type;
  const std::vector<int64_t> extents{std::istream_iterator<int64_t>(words), std::istream_iterator<int64_t>()};
  Client_BufferFromHostBuffer_Args args{};
  args.client = client;
  args.data = elements.data();
  args.type = static_cast<Buffer_Type>(type);
  args.dims = extents.data();
  args.num_dims = extents.size();
  args.host_buffer_semantics = HostBufferSemantics_kImmutableOnlyDuringCall;
  args = Call(api->Client_BufferFromHostBuffer, args);
  Await(args.done_with_host_buffer);
  return args.buffer;
}

std::string Elements(Buffer* buffer) {
  Buffer_ToHostBuffer_Args args{};
  args.src = buffer;
  args = Call(api->Buffer_ToHostBuffer, args);
  std::string data(args.dst_size, '\0');
  Buffer_ToHostBuffer_Args copy{};
  copy.src = buffer;
  copy.dst = data.data();
  copy.dst_size = data.size();
  copy = Call(api->Buffer_ToHostBuffer, copy);
  Await(copy.event);
  return data;
}

void Run(Client* client, const std::string& folder) {
  const std::string bytes = Contents(folder + "/executable");
  Executable_DeserializeAndLoad_Args load{};
  load.client = client;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  LoadedExecutable* loaded = Call(api->Executable_DeserializeAndLoad, load).loaded_executable;
  std::vector<Buffer*> arguments;
  std::ifstream descriptions(folder + "/arguments");
  for (std::string line; std::getline(descriptions, line);) {
    const std::string path = folder + "/argument" + std::to_string(arguments.size());
    arguments.push_back(Argument(client, line, Contents(path)));
  }
  Executable* program = Call(api->LoadedExecutable_GetExecutable, LoadedExecutable_GetExecutable_Args{{}, loaded, nullptr}).executable;
  Executable_NumOutputs_Args count{};
  count.executable = program;
  std::vector<Buffer*> results(Call(api->Executable_NumOutputs, count).num_outputs);
  Buffer* const* list = arguments.data();
  Buffer** outputs = results.data();
  Event* done = nullptr;
  LoadedExecutable_Execute_Args run{};
  run.executable = loaded;
  run.argument_lists = &list;
  run.num_devices = 1;
  run.num_args = arguments.size();
  run.output_lists = &outputs;
  run.device_complete_events = &done;
  Call(api->LoadedExecutable_Execute, run);
  Await(done);
  for (size_t i = 0; i < results.size(); ++i) Write(folder + "/result" + std::to_string(i), Elements(results[i]));
}

}  // namespace

int main(int count, char** arguments) {
  void* library = count < 2 ? nullptr : dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "no plugin: %s\n", count < 2 ? "see the source for how to call this" : dlerror());
    return 1;
  }
  api = reinterpret_cast<const Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  Client* client = Call(api->Client_Create, Client_Create_Args{}).client;
  for (int i = 2; i < count; ++i) {
    try {
      Run(client, arguments[i]);
    } catch (const std::exception& failure) {
      Write(std::string(arguments[i]) + "/error", failure.what());
    }
  }
  return 0;
}
