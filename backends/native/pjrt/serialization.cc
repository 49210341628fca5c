#include "serialization.h"

#include "compile_options.h"
#include "executable.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

void Serialize(Executable_Serialize_Args& args) {
  // The opaque structure that the caller deletes is the string itself.
  auto* bytes = new std::string(args.executable->program->Serialized());
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_executable = reinterpret_cast<SerializedExecutable*>(bytes);
  args.serialized_executable_deleter = [](SerializedExecutable* executable) { delete reinterpret_cast<std::string*>(executable); };
}

void DeserializeAndLoad(Executable_DeserializeAndLoad_Args& args) {
  Require(args.serialized_executable != nullptr, "the serialized executable is null");
  const std::string_view options = View(args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size);
  CompileOptions chosen = ReadCompileOptions(options);
  const bool is_accelerated = args.client->devices[0]->accelerator != nullptr;
  auto program = LoadArtifact({args.serialized_executable, args.serialized_executable_size},
                              is_accelerated ? ChosenDevices(*args.client, chosen)[0]->accelerator.get() : nullptr);
  if (options.empty()) chosen.num_replicas = program->num_replicas, chosen.num_partitions = program->num_partitions;
  if (chosen.num_replicas != program->num_replicas || chosen.num_partitions != program->num_partitions) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "the executable is for " + std::to_string(program->num_devices()) +
                                                   " devices, but another number is requested");
  }
  std::vector<Device*> devices = ChosenDevices(*args.client, chosen);
  args.loaded_executable = new LoadedExecutable(std::move(program), std::move(devices));
}

}  // namespace

void BindSerialization(Api& api) {
  api.Executable_Serialize = Method<Serialize>;
  api.Executable_DeserializeAndLoad = Method<DeserializeAndLoad>;
}

}  // namespace trivium::pjrt
