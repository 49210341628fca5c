// Compilation for a device, and the functions on the result other than running it.

#include <algorithm>

#include "executable.h"
#include "guard.h"

namespace trivium::pjrt {

std::vector<Device*> ChosenDevices(const Client& client, const CompileOptions& options) {
  const int64_t count = options.num_replicas * options.num_partitions;
  Require(count >= 1 && (options.device_ids.empty() || static_cast<int64_t>(options.device_ids.size()) == count),
          "the device assignment and the program have different sizes");
  if (count == 1 && options.device_ids.empty()) return {&client.device(options.device_ordinal < 0 ? 0 : options.device_ordinal)};
  std::vector<Device*> devices;
  for (int64_t i = 0; i < count; ++i) devices.push_back(&client.device(options.device_ids.empty() ? i : options.device_ids[i]));
  return devices;
}

std::string AcceleratorNames(const std::vector<Device*>& devices) {
  std::string names;
  for (const Device* device : devices) {
    if (device->accelerator == nullptr) continue;
    if (!names.empty()) names += '\n';
    names += device->accelerator->name;
  }
  return names;
}

std::shared_ptr<CompiledProgram> CompileWith(const Program* program, std::string_view serialized, const CompileOptions& options,
                                             const std::string& accelerators) {
  Require(program != nullptr && program->code != nullptr, "the program is null");
  if (options.has_overrides) CheckNamedOptions(serialized);
  auto compiled =
      Compile({program->code, program->code_size}, View(program->format, program->format_size), options.num_replicas, options.num_partitions,
              accelerators, options.own);
  compiled->compile_options = serialized;
  return compiled;
}

namespace {

// Compilation ahead of time, for devices that need not be here. What it returns runs once it was serialized and loaded.
void CompileForTopology(Compile_Args& args) {
  const std::string_view serialized = View(args.compile_options, args.compile_options_size);
  const CompileOptions options = ReadCompileOptions(serialized);
  const int64_t count = options.num_replicas * options.num_partitions, known = static_cast<int64_t>(args.topology->devices.size());
  Require(count >= 1 && (options.device_ids.empty() || static_cast<int64_t>(options.device_ids.size()) == count),
          "the device assignment and the program have different sizes");
  const auto is_known = [known](int64_t id) { return id >= 0 && id < known; };
  if (count > known || !std::all_of(options.device_ids.begin(), options.device_ids.end(), is_known)) {
    throw Failure(Error_Code_INVALID_ARGUMENT, "the program is for devices that the topology, which has " + std::to_string(known) + ", does not have");
  }
  args.executable = new Executable(CompileWith(args.program, serialized, options, ""));
}

void CompileForClient(Client_Compile_Args& args) {
  const std::string_view serialized = View(args.compile_options, args.compile_options_size);
  const CompileOptions options = ReadCompileOptions(serialized);
  std::vector<Device*> devices = ChosenDevices(*args.client, options);
  auto program = CompileWith(args.program, serialized, options, AcceleratorNames(devices));
  args.executable = new LoadedExecutable(std::move(program), std::move(devices));
}

void Destroy(LoadedExecutable_Destroy_Args& args) { delete args.executable; }

void GetExecutable(LoadedExecutable_GetExecutable_Args& args) { args.executable = new Executable(args.loaded_executable->program); }

void AddressableDevices(LoadedExecutable_AddressableDevices_Args& args) {
  args.addressable_devices = args.executable->devices.data();
  args.num_addressable_devices = args.executable->devices.size();
}

void GetDeviceAssignment(LoadedExecutable_GetDeviceAssignment_Args& args) {
  const CompiledProgram& program = *args.executable->program;
  std::vector<int64_t> ids;
  for (const Device* device : args.executable->devices) ids.push_back(device->description.id);
  // The opaque structure that the caller deletes is the string itself.
  auto* bytes = new std::string(SerializedDeviceAssignment(ids, program.num_replicas, program.num_partitions));
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_device_assignment = reinterpret_cast<DeviceAssignmentSerialized*>(bytes);
  args.serialized_device_assignment_deleter = [](DeviceAssignmentSerialized* assignment) {
    delete reinterpret_cast<std::string*>(assignment);
  };
}

void Delete(LoadedExecutable_Delete_Args& args) { args.executable->deleted = true; }

void IsDeleted(LoadedExecutable_IsDeleted_Args& args) { args.is_deleted = args.executable->deleted; }

void Fingerprint(LoadedExecutable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.data();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
}

}  // namespace

void BindLoadedExecutables(Api& api) {
  api.Compile = Method<CompileForTopology>;
  api.Client_Compile = Method<CompileForClient>;
  api.LoadedExecutable_Destroy = Slot<Destroy>;
  api.LoadedExecutable_GetExecutable = Method<GetExecutable>;
  api.LoadedExecutable_AddressableDevices = Method<AddressableDevices>;
  api.LoadedExecutable_GetDeviceAssignment = Method<GetDeviceAssignment>;
  api.LoadedExecutable_Delete = Method<Delete>;
  api.LoadedExecutable_IsDeleted = Method<IsDeleted>;
  api.LoadedExecutable_Fingerprint = Method<Fingerprint>;
}

}  // namespace trivium::pjrt
