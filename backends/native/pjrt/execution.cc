// Execution of a program on buffers.

#include <algorithm>

#include "buffer.h"
#include "executable.h"
#include "guard.h"

namespace trivium::pjrt {

namespace {

// Throws if a buffer that is donated is another argument too: the caller would lose what it also passes on.
void CheckDonations(const CompiledProgram& program, Buffer* const* arguments, const ExecuteOptions* options) {
  std::vector<Buffer*> sorted;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    if (!program.donated[i] || IsKept(options, i)) continue;
    if (sorted.empty()) {
      sorted.assign(arguments, arguments + program.arguments.size());
      std::sort(sorted.begin(), sorted.end());
    }
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), arguments[i]);
    if (last - first == 1) continue;
    throw Failure(Error_Code_INVALID_ARGUMENT,
                  "argument " + std::to_string(i) + " of " + program.name + " is donated, but is also another argument of the same call");
  }
}

}  // namespace

void CheckArguments(const CompiledProgram& program, Buffer* const* arguments, size_t count, const ExecuteOptions* options) {
  if (count != program.arguments.size()) {
    throw Failure(Error_Code_INVALID_ARGUMENT, program.name + " was given " + std::to_string(count) + " arguments, expected " +
                                                   std::to_string(program.arguments.size()));
  }
  Require(arguments != nullptr || count == 0, "the list of arguments is null");
  for (size_t i = 0; i < count; ++i) {
    Require(arguments[i] != nullptr, "an argument is null");
    if (arguments[i]->shape.Fits(program.arguments[i])) continue;
    throw Failure(Error_Code_INVALID_ARGUMENT, "argument " + std::to_string(i) + " of " + program.name + " is " +
                                                   arguments[i]->shape.text() + ", expected " + program.arguments[i].text());
  }
  CheckDonations(program, arguments, options);
}

void CheckMemories(const CompiledProgram& program, const Device& device, Buffer* const* arguments, size_t count) {
  if (device.accelerator == nullptr) return;
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i]->memory->device == &device) continue;
    throw Failure(Error_Code_INVALID_ARGUMENT, "argument " + std::to_string(i) + " of " + program.name + " is in " +
                                                   arguments[i]->memory->text + ", expected " + device.memories[0].text);
  }
}

std::vector<CompletionPtr> Pending(Buffer* const* arguments, size_t count, const Device& device) {
  std::vector<CompletionPtr> pending;
  for (size_t i = 0; i < count; ++i) {
    if (CompletionPtr completion = arguments[i]->PendingFor(device)) pending.push_back(std::move(completion));
  }
  return pending;
}

HostSide HostSideOf(const CompiledProgram& program, const ExecuteOptions* options, size_t device) {
  return {ffi::UserDataOf(options), TransfersOf(program.name, program.channels, options, device)};
}

bool IsKept(const ExecuteOptions* options, size_t argument) {
  if (options == nullptr) return false;
  for (size_t i = 0; i < options->num_non_donatable_input_indices; ++i) {
    if (options->non_donatable_input_indices[i] == static_cast<int64_t>(argument)) return true;
  }
  return false;
}

namespace {

// The references to memory that a queued run writes.
class Writing {
 public:
  explicit Writing(std::vector<Storage*> written) : written_(std::move(written)) {
    for (Storage* storage : written_) storage->AddWriter();
  }
  ~Writing() {
    for (Storage* storage : written_) storage->RemoveWriter();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  const std::vector<Storage*> written_;
};

// The resources that a run uses while it lasts. A result may be in the memory of an argument.
struct RunMemory {
  std::vector<StoragePtr> arguments;
  std::vector<StoragePtr> results;
  std::shared_ptr<const Writing> writing;  // the last one: released before the references that it counts

  // Counts the references from now on.
  void BeginWriting() {
    std::vector<Storage*> written;
    for (const StoragePtr& result : results) written.push_back(result.get());
    for (const StoragePtr& argument : arguments) {
      if (std::find(results.begin(), results.end(), argument) != results.end()) written.push_back(argument.get());
    }
    writing = std::make_shared<Writing>(std::move(written));
  }

  // Of the arguments, then of the results. Those of promised arguments are known when these are ready.
  std::vector<void*> Addresses() const {
    std::vector<void*> addresses;
    addresses.reserve(arguments.size() + results.size());
    for (const StoragePtr& argument : arguments) addresses.push_back(argument->data());
    for (const StoragePtr& result : results) addresses.push_back(result->data());
    return addresses;
  }
};

void Donate(const CompiledProgram& program, Buffer* const* arguments, const ExecuteOptions* options) {
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    if (program.donated[i] && !IsKept(options, i)) arguments[i]->Donate();
  }
}

// Returns for each result in which argument's memory it will be, or -1: in that of an argument that is given away, that is the device's
// own, and that nobody else uses. The caller and the argument's buffer have a reference each.
std::vector<int32_t> ResultsInPlace(const CompiledProgram& program, const std::vector<StoragePtr>& arguments, const Memory& memory,
                                    const ExecuteOptions* options) {
  std::vector<int32_t> found = program.aliases;
  for (int32_t& argument : found) {
    if (argument < 0) continue;
    const StoragePtr& storage = arguments[argument];
    if (IsKept(options, argument) || !storage->IsOwnMemoryOf(memory) || !IsOnlyOf(storage, 2)) argument = -1;
  }
  return found;
}

// Takes the resources of the run, and donated arguments' memory from them: last, so that a run that cannot begin leaves them unchanged.
// A run that is queued keeps what it uses, whatever its caller deletes or donates meanwhile.
RunMemory TakeMemory(const CompiledProgram& program, Buffer* const* arguments, Memory& memory, const ExecuteOptions* options) {
  RunMemory taken;
  const size_t count = program.arguments.size();
  taken.arguments.reserve(count);
  for (size_t i = 0; i < count; ++i) taken.arguments.push_back(arguments[i]->storage());
  if (!program.has_aliases) {
    taken.results = Storage::AllocateAll(memory, program.result_bytes);
    Donate(program, arguments, options);
    return taken;
  }
  const std::vector<int32_t> in_place = ResultsInPlace(program, taken.arguments, memory, options);
  std::vector<size_t> sizes;
  for (size_t i = 0; i < in_place.size(); ++i) {
    if (in_place[i] < 0) sizes.push_back(program.result_bytes[i]);
  }
  std::vector<StoragePtr> allocated = Storage::AllocateAll(memory, sizes);
  Donate(program, arguments, options);
  auto next = allocated.begin();
  for (size_t i = 0; i < in_place.size(); ++i) {
    if (in_place[i] < 0) {
      taken.results.push_back(std::move(*next++));
    } else if (const StoragePtr& argument = taken.arguments[in_place[i]]; IsOnlyOf(argument, 1)) {
      taken.results.push_back(argument);
    } else {  // another thread has begun to use it
      taken.results.push_back(Storage::Allocate(memory, program.result_bytes[i]));
    }
  }
  return taken;
}

// Runs now, or queues the run if it takes long or an argument is not ready. Returns what the results wait for.
Readiness Start(const std::shared_ptr<CompiledProgram>& program, std::vector<CompletionPtr> inputs, RunMemory& memory, Device& device,
                HostSide host) {
  if (inputs.empty() && program->is_quick() && device.accelerator == nullptr) {
    program->Run(memory.Addresses().data(), host);
    return {};
  }
  RunMemory used{std::move(memory.arguments), memory.results, nullptr};
  used.BeginWriting();
  auto run = [program, &device, host = std::move(host), used = std::move(used)]() mutable {
    for (StoragePtr& argument : used.arguments) argument = Placed(std::move(argument), device.default_memory());
    program->Run(used.Addresses().data(), host);
  };
  return device.Start(program->is_quick(), std::move(inputs), std::move(run));
}

// Throws if an accelerator would run a program of another device.
void CheckDevice(const CompiledProgram& program, const LoadedExecutable& executable, const Device& device) {
  if (device.accelerator == nullptr || &device == executable.devices[0]) return;
  throw Failure(Error_Code_INVALID_ARGUMENT, program.name + " was compiled for " + executable.devices[0]->accelerator->name +
                                                 ", but is to run on " + device.accelerator->name);
}

void Execute(LoadedExecutable_Execute_Args& args) {
  LoadedExecutable& executable = *args.executable;
  CompiledProgram& program = *executable.program;
  if (executable.deleted) throw Failure(Error_Code_FAILED_PRECONDITION, "executable " + program.name + " has been deleted");
  Require(args.num_devices == executable.devices.size(), "the number of argument lists is not the number of the program's devices");
  if (args.num_devices > 1) return ExecuteOnDevices(args);
  Buffer* const* arguments = args.num_args == 0 ? nullptr : args.argument_lists[0];
  CheckArguments(program, arguments, args.num_args, args.options);
  HostSide host = HostSideOf(program, args.options, 0);
  Device& device = args.execute_device != nullptr ? *args.execute_device : *executable.devices[0];
  CheckDevice(program, executable, device);
  CheckMemories(program, device, arguments, args.num_args);
  std::vector<CompletionPtr> inputs = Pending(arguments, args.num_args, device);
  RunMemory memory = TakeMemory(program, arguments, device.default_memory(), args.options);
  const Readiness done = Start(executable.program, std::move(inputs), memory, device, std::move(host));
  if (args.options != nullptr) device.launches.Add(args.options->launch_id, done.for_all);
  for (size_t i = 0; i < memory.results.size(); ++i) {
    args.output_lists[0][i] = new Buffer(&device.default_memory(), program.results[i], std::move(memory.results[i]), done);
  }
  if (args.device_complete_events != nullptr) args.device_complete_events[0] = NewEvent(done.for_all);
}

}  // namespace

void BindExecution(Api& api) { api.LoadedExecutable_Execute = Method<Execute>; }

}  // namespace trivium::pjrt
