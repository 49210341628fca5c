// Devices and their memories: this machine's processors under one or several names, whose memory is the host's, or accelerators.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abi/extensions.h"
#include "accelerator.h"
#include "error.h"
#include "launches.h"
#include "queue.h"

namespace trivium::pjrt {

// A kind of memory.
struct MemoryDescription {
  int id;
  std::string_view name;
};

struct DeviceDescription {
  int id;
  std::string kind;
  std::string text;
  size_t num_memories;
};

// The current contents of a device's memories.
struct Statistics {
  std::atomic<int64_t> bytes_in_use{0}, peak_bytes_in_use{0}, allocations{0}, largest_allocation{0};

  void Allocated(int64_t bytes);
  void Freed(int64_t bytes) { bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed); }
};

DeviceDescription Describe(int id);

struct Memory {
  // Whether its bytes have addresses of the host: those of an accelerator's own memory have not.
  bool is_on_host() const;

  int id;
  const MemoryDescription* kind;
  std::string text;
  Device* device;
};

struct Device {
  Device(Client* client, int id);
  // An accelerator of that name, such as "cuda:0", and of this model.
  Device(Client* client, int id, std::string name, std::string kind);
  Device(const Device&) = delete;

  Memory& default_memory() { return memories[0]; }

  // Does work on memories of the device: here, if it is quick and has no inputs to wait for, or by the queue. An accelerator's is always
  // quick: it is told, and works on its own.
  Readiness Start(bool is_quick, std::vector<CompletionPtr> inputs, Queue::Work work);

  Client* client;
  DeviceDescription description;
  // The names that JAX's users may request. All are the host's memory, so moving from one to another moves nothing; but the first one of an
  // accelerator is its own.
  std::array<Memory, 3> memories;
  std::vector<Memory*> memory_list;
  std::vector<Device*> itself;
  Statistics statistics;
  const std::unique_ptr<Accelerator> accelerator;  // null if memory is the host's
  Launches launches;
  Queue transfers;  // copies from the host that runs may wait for
  Queue queue;      // destroyed first, when all work is done
};

// Throws if the memory is that of an accelerator, for which `what` does not exist: other threads than the host's would have to enter Python.
void RequireHost(const Memory& memory, const std::string& what);

void BindDevices(Api& api);
void BindLaunches(Api& api);
void BindTrackingEvents(Api& api);

}  // namespace trivium::pjrt
