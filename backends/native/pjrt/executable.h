// Executables: compiled programs, and the same with devices to run on.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "compile_options.h"
#include "event.h"
#include "layouts.h"
#include "program.h"

namespace trivium::pjrt {

// A program as queried by its users.
struct Executable {
  explicit Executable(std::shared_ptr<CompiledProgram> program);

  const std::shared_ptr<CompiledProgram> program;
  // The parts that the interface returns as arrays, which live as long as the executable.
  std::vector<Buffer_Type> result_types;
  std::vector<int64_t> result_dims;
  std::vector<size_t> result_ranks;
  std::vector<const char*> result_memory_kinds;
  std::vector<size_t> result_memory_kind_sizes;
  std::vector<Layouts_MemoryLayout*> argument_layouts, result_layouts;
  std::vector<const char*> shardings;  // of the arguments, then of the results; empty for a program of one device
  std::vector<size_t> sharding_sizes;
  std::vector<NamedValue> costs;

 private:
  std::vector<Layouts_MemoryLayout> layouts_;
};

struct LoadedExecutable {
  LoadedExecutable(std::shared_ptr<CompiledProgram> program, std::vector<Device*> devices)
      : program(std::move(program)), devices(std::move(devices)) {}

  const std::shared_ptr<CompiledProgram> program;
  std::vector<Device*> devices;  // replica by replica, within each replica by partition
  std::atomic<bool> deleted{false};
};

// The devices that a host requests, in the order of the program's.
std::vector<Device*> ChosenDevices(const Client& client, const CompileOptions& options);

// The names of devices that are accelerators, in lines, for the compiler.
std::string AcceleratorNames(const std::vector<Device*>& devices);

// Compiles a program with its caller's options, which it keeps in the form in which they were `serialized`; for `accelerators`, as
// `Compile` does.
std::shared_ptr<CompiledProgram> CompileWith(const Program* program, std::string_view serialized, const CompileOptions& options,
                                             const std::string& accelerators);

void BindExecutables(Api& api);
void BindLoadedExecutables(Api& api);
void BindExecution(Api& api);

// Execute, for a program of several devices. If the arguments do not fit, throws before anything has changed.
void ExecuteOnDevices(LoadedExecutable_Execute_Args& args);

// Throws unless the program takes these arguments.
void CheckArguments(const CompiledProgram& program, Buffer* const* arguments, size_t count, const ExecuteOptions* options);

// Throws if an accelerator would use memory of another device.
void CheckMemories(const CompiledProgram& program, const Device& device, Buffer* const* arguments, size_t count);

// What a run of these arguments on a device must wait for, or fails with.
std::vector<CompletionPtr> Pending(Buffer* const* arguments, size_t count, const Device& device);

// What the caller gives a run on one of the program's devices besides its arguments. Throws unless it has a callback for each channel.
HostSide HostSideOf(const CompiledProgram& program, const ExecuteOptions* options, size_t device);

// Whether the caller keeps a donated argument for itself.
bool IsKept(const ExecuteOptions* options, size_t argument);

}  // namespace trivium::pjrt
