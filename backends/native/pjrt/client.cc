#include "client.h"

#include <charconv>
#include <cstdlib>

#include "guard.h"
#include "python_host.h"

namespace trivium::pjrt {
namespace {

constexpr int kMaxDevices = 1024;

}  // namespace

Client::Client(int num_devices, std::string platform_version) : topology{std::string(kPlatformName), std::move(platform_version), {}} {
  for (int id = 0; id < num_devices; ++id) Add(std::make_unique<Device>(this, id));
}

Client::Client(const std::string& platform, std::string platform_version) : topology{"trivium_gpu", std::move(platform_version), {}} {
  for (auto& [name, kind] : OpenPlatform(platform)) {
    Add(std::make_unique<Device>(this, static_cast<int>(owned.size()), std::move(name), std::move(kind)));
  }
}

void Client::Add(std::unique_ptr<Device> device) {
  devices.push_back(device.get());
  memories.insert(memories.end(), device->memory_list.begin(), device->memory_list.end());
  topology.devices.push_back(&device->description);
  owned.push_back(std::move(device));
}

Device& Client::device(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(devices.size())) {
    throw Failure(Error_Code_NOT_FOUND, "there is no device " + std::to_string(id) + ", only " + std::to_string(devices.size()));
  }
  return *devices[id];
}

namespace {

int CheckedNumber(int64_t number) {
  if (number >= 1 && number <= kMaxDevices) return static_cast<int>(number);
  throw Failure(Error_Code_INVALID_ARGUMENT,
                "the number of devices (TRIVIUM_NUM_DEVICES) is not a number from 1 to " + std::to_string(kMaxDevices));
}

// From the option, or else from the environment; otherwise one.
int NumberOfDevices(const NamedValue* option) {
  if (option != nullptr) {
    Require(option->type == NamedValue_kInt64, "option num_devices is not an integer");
    return CheckedNumber(option->int64_value);
  }
  const char* text = std::getenv("TRIVIUM_NUM_DEVICES");
  return text == nullptr || *text == 0 ? 1 : ReadNumberOfDevices(text);
}

std::string Text(const NamedValue& option) {
  Require(option.type == NamedValue_kString, "an option of the client is not a string, but names one");
  return std::string(View(option.string_value, option.value_size));
}

}  // namespace

int ReadNumberOfDevices(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return CheckedNumber(error != std::errc() || rest != text.data() + text.size() ? 0 : number);
}

ClientOptions ReadClientOptions(const NamedValue* options, size_t count) {
  Require(options != nullptr || count == 0, "the options are null");
  const NamedValue *num_devices = nullptr, *platform = nullptr;
  std::string version = "PJRT " + std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion);
  for (size_t i = 0; i < count; ++i) {
    const NamedValue& option = options[i];
    const std::string_view key = View(option.name, option.name_size);
    if (key == "num_devices") {
      num_devices = &option;
    } else if (key == "platform") {
      platform = &option;
    } else if (key == "platform_version") {
      version = Text(option) + ", " + version;
    } else if (key == "python") {
      ChoosePython(Text(option));
    } else {
      throw Failure(Error_Code_INVALID_ARGUMENT,
                    "unknown option '" + std::string(key) + "' of the client, expected num_devices, platform, platform_version or python");
    }
  }
  if (platform != nullptr) {
    Require(num_devices == nullptr, "option num_devices is for processors, expected none with option platform");
    return {0, Text(*platform), std::move(version)};
  }
  return {NumberOfDevices(num_devices), "", std::move(version)};
}

namespace {

void Create(Client_Create_Args& args) {
  ClientOptions options = ReadClientOptions(args.create_options, args.num_options);
  args.client = options.platform.empty() ? new Client(options.num_devices, std::move(options.platform_version))
                                         : new Client(options.platform, std::move(options.platform_version));
}

void Destroy(Client_Destroy_Args& args) { delete args.client; }

void PlatformName(Client_PlatformName_Args& args) {
  args.platform_name = args.client->topology.platform_name.data();
  args.platform_name_size = args.client->topology.platform_name.size();
}

void PlatformVersion(Client_PlatformVersion_Args& args) {
  args.platform_version = args.client->topology.platform_version.data();
  args.platform_version_size = args.client->topology.platform_version.size();
}

void ProcessIndex(Client_ProcessIndex_Args& args) { args.process_index = 0; }

void GetTopology(Client_TopologyDescription_Args& args) { args.topology = &args.client->topology; }

void Devices(Client_Devices_Args& args) {
  args.devices = args.client->devices.data();
  args.num_devices = args.client->devices.size();
}

void AddressableDevices(Client_AddressableDevices_Args& args) {
  args.addressable_devices = args.client->devices.data();
  args.num_addressable_devices = args.client->devices.size();
}

void LookupDevice(Client_LookupDevice_Args& args) { args.device = &args.client->device(args.id); }

void LookupAddressableDevice(Client_LookupAddressableDevice_Args& args) {
  args.addressable_device = &args.client->device(args.local_hardware_id);
}

void AddressableMemories(Client_AddressableMemories_Args& args) {
  args.addressable_memories = args.client->memories.data();
  args.num_addressable_memories = args.client->memories.size();
}

// Devices in order: replica by replica, and within each replica partition by partition.
void DefaultDeviceAssignment(Client_DefaultDeviceAssignment_Args& args) {
  Require(args.num_replicas > 0 && args.num_partitions > 0, "the numbers of replicas and partitions must be positive");
  const int64_t count = int64_t{args.num_replicas} * args.num_partitions;
  Require(args.default_assignment != nullptr && static_cast<int64_t>(args.default_assignment_size) >= count,
          "default_assignment is too small");
  for (int64_t i = 0; i < count; ++i) args.default_assignment[i] = args.client->device(i).description.id;
}

// The host's memory is the device's: there is nothing to prepare for transfers.
void DmaMap(Client_DmaMap_Args&) {}
void DmaUnmap(Client_DmaUnmap_Args&) {}

// A client has the devices of its own process only, so that nothing here depends on other processes.
void UpdateGlobalProcessInfo(Client_UpdateGlobalProcessInfo_Args& args) {
  Require(args.process_infos != nullptr || args.num_process_infos == 0, "the list of processes is null");
}

}  // namespace

void BindClients(Api& api) {
  api.Client_Create = Slot<Create>;
  api.Client_Destroy = Slot<Destroy>;
  api.Client_PlatformName = Method<PlatformName>;
  api.Client_PlatformVersion = Method<PlatformVersion>;
  api.Client_ProcessIndex = Method<ProcessIndex>;
  api.Client_TopologyDescription = Method<GetTopology>;
  api.Client_Devices = Method<Devices>;
  api.Client_AddressableDevices = Method<AddressableDevices>;
  api.Client_LookupDevice = Method<LookupDevice>;
  api.Client_LookupAddressableDevice = Method<LookupAddressableDevice>;
  api.Client_AddressableMemories = Method<AddressableMemories>;
  api.Client_DefaultDeviceAssignment = Method<DefaultDeviceAssignment>;
  api.Client_DmaMap = Method<DmaMap>;
  api.Client_DmaUnmap = Method<DmaUnmap>;
  api.Client_UpdateGlobalProcessInfo = Method<UpdateGlobalProcessInfo>;
}

}  // namespace trivium::pjrt
