// The client: the devices of this process.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/extensions.h"
#include "device.h"

namespace trivium::pjrt {

struct TopologyDescription {
  std::string platform_name;
  std::string platform_version;
  std::vector<DeviceDescription*> devices;
  // The descriptions of devices, if these are not a client's.
  std::vector<std::unique_ptr<DeviceDescription>> owned = {};
};

// Properties of a new client or topology, which a caller states by name. Option `python` is for the process: see ChoosePython.
struct ClientOptions {
  int num_devices;
  std::string platform;  // of accelerators; empty for this machine's processors
  std::string platform_version;
};
ClientOptions ReadClientOptions(const NamedValue* options, size_t count);

// The same for the number of devices, given as a text. Throws unless it is a number that a client may have.
int ReadNumberOfDevices(std::string_view text);

inline constexpr std::string_view kPlatformName = "trivium";

// A function of the host, and its own argument.
using HostCallback = std::pair<Callback_Function, void*>;

struct Client {
  // This machine's processors, as a number of devices.
  Client(int num_devices, std::string platform_version);
  // The devices of a platform of accelerators, such as "cuda".
  Client(const std::string& platform, std::string platform_version);
  Client(const Client&) = delete;

  // Throws if there is no device with that number.
  Device& device(int64_t id) const;

  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  TopologyDescription topology;
  std::vector<HostCallback> callbacks;  // for the end of the process by an error, guarded by LockOf(this)

 private:
  void Add(std::unique_ptr<Device> device);
};

void BindClients(Api& api);
void BindTopologies(Api& api);

}  // namespace trivium::pjrt
