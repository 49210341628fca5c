#include "serialization.h"

#include <cstring>

#include "compile_options.h"
#include "executable.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

// After an artifact: the options with which its program was compiled, their size, and this mark.
constexpr std::string_view kMark = "triviumO";

std::string WithOptions(std::string artifact, const std::string& options) {
  if (options.empty()) return artifact;
  const uint64_t size = options.size();
  artifact += options;
  artifact.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return artifact.append(kMark);
}

// The options after an artifact, which are removed from it; empty if there are none.
std::string_view TakeOptions(std::string_view& bytes) {
  uint64_t size;
  constexpr size_t kEnd = sizeof(size) + kMark.size();
  if (bytes.size() < kEnd || !bytes.ends_with(kMark)) return {};
  std::memcpy(&size, bytes.data() + bytes.size() - kEnd, sizeof(size));
  if (size > bytes.size() - kEnd) return {};
  const std::string_view options = bytes.substr(bytes.size() - kEnd - size, size);
  bytes.remove_suffix(kEnd + size);
  return options;
}

void Serialize(Executable_Serialize_Args& args) {
  // The opaque structure that the caller deletes is the string itself.
  const CompiledProgram& program = *args.executable->program;
  auto* bytes = new std::string(WithOptions(program.Serialized(), program.compile_options));
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_executable = reinterpret_cast<SerializedExecutable*>(bytes);
  args.serialized_executable_deleter = [](SerializedExecutable* executable) { delete reinterpret_cast<std::string*>(executable); };
}

void GetCompileOptions(Executable_GetCompileOptions_Args& args) {
  const CompiledProgram& program = *args.executable->program;
  const bool is_known = !program.compile_options.empty();
  auto* bytes = new std::string(is_known ? program.compile_options : SerializedOptions(program.num_replicas, program.num_partitions));
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_compile_options = reinterpret_cast<SerializedCompileOptions*>(bytes);
  args.serialized_compile_options_deleter = [](SerializedCompileOptions* options) { delete reinterpret_cast<std::string*>(options); };
}

void DeserializeAndLoad(Executable_DeserializeAndLoad_Args& args) {
  Require(args.serialized_executable != nullptr, "the serialized executable is null");
  const std::string_view options = View(args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size);
  std::string_view artifact(args.serialized_executable, args.serialized_executable_size);
  const std::string_view original = TakeOptions(artifact);
  CompileOptions chosen = ReadCompileOptions(options.empty() ? original : options);
  auto program = LoadArtifact(artifact, AcceleratorNames(ChosenDevices(*args.client, chosen)));
  program->compile_options = options.empty() ? original : options;
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
  api.Executable_GetCompileOptions = Method<GetCompileOptions>;
  api.Executable_Serialize = Method<Serialize>;
  api.Executable_DeserializeAndLoad = Method<DeserializeAndLoad>;
}

}  // namespace trivium::pjrt
