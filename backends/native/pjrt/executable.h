// Executables: compiled programs, and the same with a device to run on.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "program.h"

namespace trivium::pjrt {

// A program as its users ask about it.
struct Executable {
  explicit Executable(std::shared_ptr<CompiledProgram> program);

  const std::shared_ptr<CompiledProgram> program;
  // What the interface gives as arrays that live as long as the executable.
  std::vector<Buffer_Type> result_types;
  std::vector<int64_t> result_dims;
  std::vector<size_t> result_ranks;
  std::vector<const char*> result_memory_kinds;
  std::vector<size_t> result_memory_kind_sizes;
  std::vector<NamedValue> costs;
};

struct LoadedExecutable {
  LoadedExecutable(std::shared_ptr<CompiledProgram> program, Device* device) : program(std::move(program)), device(device), devices{device} {}

  const std::shared_ptr<CompiledProgram> program;
  Device* const device;
  std::vector<Device*> devices;
  std::atomic<bool> deleted{false};
};

void BindExecutables(Api& api);
void BindLoadedExecutables(Api& api);
void BindExecution(Api& api);

}  // namespace trivium::pjrt
