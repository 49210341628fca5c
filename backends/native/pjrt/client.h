// The client: the devices of this process.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device.h"

namespace trivium::pjrt {

struct TopologyDescription {
  std::string platform_name;
  std::string platform_version;
  std::vector<DeviceDescription*> devices;
};

struct Client {
  Client(int num_devices, std::string platform_name, std::string platform_version);
  Client(const Client&) = delete;

  // Throws if there is no device with that number.
  Device& device(int64_t id) const;

  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  TopologyDescription topology;
};

void BindClients(Api& api);
void BindTopologies(Api& api);

}  // namespace trivium::pjrt
