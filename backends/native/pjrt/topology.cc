// A client's topology: its devices without the means to use them.

#include "client.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

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
  api.TopologyDescription_PlatformName = Method<PlatformName>;
  api.TopologyDescription_PlatformVersion = Method<PlatformVersion>;
  api.TopologyDescription_GetDeviceDescriptions = Method<GetDeviceDescriptions>;
  api.TopologyDescription_Attributes = Method<Attributes>;
}

}  // namespace trivium::pjrt
