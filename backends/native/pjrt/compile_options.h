// The part of XLA's CompileOptionsProto that we read: hosts specify in it for which devices a program is compiled.

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
  // By replica, and within each replica by partition; empty if not specified.
  std::vector<int64_t> device_ids;
  bool has_overrides = false;  // whether the caller sets options of XLA's compiler by their names
  std::string own;             // those of our compiler, such as "fast_math=1", a line each
};

// Throws if the bytes are not a protocol buffer, or have a named option that neither XLA nor Trivium can have.
CompileOptions ReadCompileOptions(std::string_view bytes);

// Returns options that say for how many devices a program is compiled, and nothing else.
std::string SerializedOptions(int64_t replicas, int64_t partitions);

// Returns the DeviceAssignmentProto of devices in the order of `device_ids`.
std::string SerializedDeviceAssignment(const std::vector<int64_t>& device_ids, int64_t replicas, int64_t partitions);

}  // namespace trivium::pjrt
