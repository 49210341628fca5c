// What we read of XLA's CompileOptionsProto, in which hosts say for which devices a program is compiled.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::pjrt {

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  int64_t device_ordinal = -1;
  // By replica, and within each by partition; empty where nothing is said.
  std::vector<int64_t> device_ids;
};

// Throws when the bytes are no protocol buffer.
CompileOptions ReadCompileOptions(std::string_view bytes);

// DeviceAssignmentProto of devices in the order of `device_ids`.
std::string SerializedDeviceAssignment(const std::vector<int64_t>& device_ids, int64_t replicas, int64_t partitions);

}  // namespace trivium::pjrt
