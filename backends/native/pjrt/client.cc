#include "client.h"

#include <charconv>
#include <cstdlib>

#include "guard.h"

namespace trivium::pjrt {
namespace {

constexpr int kMaxDevices = 1024;

}  // namespace

Client::Client(int num_devices, std::string platform_version) : topology{"trivium", std::move(platform_version), {}} {
  for (int id = 0; id < num_devices; ++id) Add(std::make_unique<Device>(this, id));
}

Client::Client(const std::string& platform, std::string platform_version) : topology{"trivium_gpu", std::move(platform_version), {}} {
  for (std::string& kind : OpenPlatform(platform)) {
    Add(std::make_unique<Device>(this, static_cast<int>(owned.size()), platform, std::move(kind)));
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

// From the option, or else from the environment; otherwise one.
int64_t NumberOfDevices(const NamedValue* option) {
  int64_t number = 1;
  if (option != nullptr) {
    Require(option->type == NamedValue_kInt64, "option num_devices is not an integer");
    number = option->int64_value;
  } else if (const char* text = std::getenv("TRIVIUM_NUM_DEVICES"); text != nullptr && *text != 0) {
    const char* end = text + std::char_traits<char>::length(text);
    const auto [rest, error] = std::from_chars(text, end, number);
    if (error != std::errc() || rest != end) number = 0;
  }
  if (number >= 1 && number <= kMaxDevices) return number;
  throw Failure(Error_Code_INVALID_ARGUMENT,
                "the number of devices (TRIVIUM_NUM_DEVICES) is not a number from 1 to " + std::to_string(kMaxDevices));
}

std::string Text(const NamedValue& option) {
  Require(option.type == NamedValue_kString, "an option of the client is not a string, but names one");
  return std::string(View(option.string_value, option.value_size));
}

void Create(Client_Create_Args& args) {
  const NamedValue *num_devices = nullptr, *platform = nullptr;
  std::string version = "PJRT " + std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion);
  for (size_t i = 0; i < args.num_options; ++i) {
    const NamedValue& option = args.create_options[i];
    const std::string_view key = View(option.name, option.name_size);
    if (key == "num_devices") {
      num_devices = &option;
    } else if (key == "platform") {
      platform = &option;
    } else if (key == "platform_version") {
      version = Text(option) + ", " + version;
    } else {
      throw Failure(Error_Code_INVALID_ARGUMENT,
                    "unknown option '" + std::string(key) + "' of the client, expected num_devices, platform or platform_version");
    }
  }
  if (platform == nullptr) {
    args.client = new Client(static_cast<int>(NumberOfDevices(num_devices)), std::move(version));
  } else {
    Require(num_devices == nullptr, "option num_devices is for processors, expected none with option platform");
    args.client = new Client(Text(*platform), std::move(version));
  }
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
}

}  // namespace trivium::pjrt
