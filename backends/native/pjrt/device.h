// Devices, which are this machine's processors under one or several names, and their memories, which are the host's.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "abi/extensions.h"
#include "error.h"
#include "queue.h"

namespace trivium::pjrt {

// A kind of memory, which all devices have.
struct MemoryDescription {
  int id;
  std::string_view name;
};

struct DeviceDescription {
  int id;
  std::string kind;
  std::string text;
};

// The current contents of a device's memories.
struct Statistics {
  std::atomic<int64_t> bytes_in_use{0}, peak_bytes_in_use{0}, allocations{0}, largest_allocation{0};

  void Allocated(int64_t bytes);
  void Freed(int64_t bytes) { bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed); }
};

struct Memory {
  int id;
  const MemoryDescription* kind;
  std::string text;
  Device* device;
};

struct Device {
  Device(Client* client, int id);
  Device(const Device&) = delete;

  Memory& default_memory() { return memories[0]; }

  Client* client;
  DeviceDescription description;
  // The names that JAX's users may request. All are the host's memory, so moving from one to another moves nothing.
  std::array<Memory, 3> memories;
  std::vector<Memory*> memory_list;
  std::vector<Device*> itself;
  Statistics statistics;
  Queue queue;  // destroyed first, when all work is done
};

void BindDevices(Api& api);

}  // namespace trivium::pjrt
