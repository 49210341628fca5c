// Topologies: devices without the means to use them, of a client or for compiling ahead of time.

#include <memory>

#include "client.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

constexpr std::string_view kHead = "trivium topology 1\n";

TopologyDescription* NewTopology(int num_devices, std::string platform_version) {
  auto topology = std::make_unique<TopologyDescription>(std::string(kPlatformName), std::move(platform_version), std::vector<DeviceDescription*>{});
  for (int id = 0; id < num_devices; ++id) {
    topology->owned.push_back(std::make_unique<DeviceDescription>(Describe(id)));
    topology->devices.push_back(topology->owned.back().get());
  }
  return topology.release();
}

// A topology has no name, or that of a processor, "cpu", or of several, such as "cpu:4"; the options are those of a client.
void Create(TopologyDescription_Create_Args& args) {
  const std::string_view name = View(args.topology_name, args.topology_name_size);
  ClientOptions options = ReadClientOptions(args.create_options, args.num_options);
  Require(options.platform.empty(), "option platform is for clients, expected none for a topology, which is of processors");
  if (name.starts_with("cpu:")) {
    options.num_devices = ReadNumberOfDevices(name.substr(4));
  } else if (!name.empty() && name != "cpu") {
    throw Failure(Error_Code_INVALID_ARGUMENT, "unknown topology '" + std::string(name) + "', expected cpu, or a number of them such as cpu:4");
  }
  args.topology = NewTopology(options.num_devices, std::move(options.platform_version));
}

void Destroy(TopologyDescription_Destroy_Args& args) {
  if (args.topology == nullptr) return;
  Require(!args.topology->owned.empty(), "the topology belongs to its client, which destroys it");
  delete args.topology;
}

void Serialize(TopologyDescription_Serialize_Args& args) {
  // The opaque structure that the caller deletes is the string itself.
  auto* bytes = new std::string(kHead);
  *bytes += std::to_string(args.topology->devices.size()) + "\n" + args.topology->platform_version;
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_topology = reinterpret_cast<SerializedTopology*>(bytes);
  args.serialized_topology_deleter = [](SerializedTopology* topology) { delete reinterpret_cast<std::string*>(topology); };
}

void Deserialize(TopologyDescription_Deserialize_Args& args) {
  const std::string_view bytes = View(args.serialized_topology, args.serialized_topology_size);
  const size_t line = bytes.find('\n', kHead.size());
  Require(bytes.starts_with(kHead) && line != std::string_view::npos, "the bytes are not a topology of this version of Trivium");
  args.topology = NewTopology(ReadNumberOfDevices(bytes.substr(kHead.size(), line - kHead.size())), std::string(bytes.substr(line + 1)));
}

void PlatformName(TopologyDescription_PlatformName_Args& args) {
  args.platform_name = args.topology->platform_name.data();
  args.platform_name_size = args.topology->platform_name.size();
}

void PlatformVersion(TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = args.topology->platform_version.data();
  args.platform_version_size = args.topology->platform_version.size();
}

void GetDeviceDescriptions(TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = args.topology->devices.data();
  args.num_descriptions = args.topology->devices.size();
}

void Attributes(TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

}  // namespace

void BindTopologies(Api& api) {
  api.TopologyDescription_Create = Slot<Create>;
  api.TopologyDescription_Destroy = Slot<Destroy>;
  api.TopologyDescription_Serialize = Method<Serialize>;
  api.TopologyDescription_Deserialize = Slot<Deserialize>;
  api.TopologyDescription_PlatformName = Method<PlatformName>;
  api.TopologyDescription_PlatformVersion = Method<PlatformVersion>;
  api.TopologyDescription_GetDeviceDescriptions = Method<GetDeviceDescriptions>;
  api.TopologyDescription_Attributes = Method<Attributes>;
}

}  // namespace trivium::pjrt
