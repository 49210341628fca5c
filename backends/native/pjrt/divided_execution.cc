// Execution of programs that several devices run together, on parts of arrays.

#include <optional>
#include <thread>

#include "../collectives.h"
#include "buffer.h"
#include "executable.h"
#include "guard.h"

namespace trivium::pjrt {
namespace {

const char* Bytes(const StoragePtr& storage) { return static_cast<const char*>(storage->data()); }
char* MutableBytes(const StoragePtr& storage) { return static_cast<char*>(storage->data()); }

// Copies the part of one device into the whole, or out of it.
void Join(const StoragePtr& part, const StoragePtr& whole, const Piece& piece, size_t device) {
  const std::vector<int64_t>& dims = piece.part.dims;
  const std::vector<int64_t> zeros(dims.size(), 0);
  CopyBox(Bytes(part), dims, zeros, MutableBytes(whole), piece.whole.dims, piece.begins[device], dims, BytesOf(piece.part.type));
}

void Cut(const StoragePtr& whole, const Piece& piece, size_t device, const StoragePtr& part) {
  const std::vector<int64_t>& dims = piece.part.dims;
  const std::vector<int64_t> zeros(dims.size(), 0);
  CopyBox(Bytes(whole), piece.whole.dims, piece.begins[device], MutableBytes(part), dims, zeros, dims, BytesOf(piece.part.type));
}

// The memory of one execution, by device and then by argument or result.
class DividedRun {
 public:
  DividedRun(std::shared_ptr<CompiledProgram> program, const std::vector<Device*>& devices, std::vector<HostSide> hosts)
      : hosts_(std::move(hosts)), owner_(std::move(program)), program_(*owner_), runs_(program_.is_shared ? 1 : devices.size()), wholes_(runs_) {
    for (Device* device : devices) memories_.push_back(&device->default_memory());
  }

  void Take(const LoadedExecutable_Execute_Args& args) {
    for (size_t device = 0; device < devices(); ++device) {
      auto& results = results_.emplace_back();
      for (const size_t bytes : program_.result_bytes) results.push_back(Storage::Allocate(memory(device), bytes));
    }
    for (size_t device = 0; device < devices(); ++device) {
      auto& arguments = arguments_.emplace_back();
      for (size_t i = 0; i < program_.arguments.size(); ++i) {
        arguments.push_back(args.argument_lists[device][i]->storage());
      }
    }
    for (size_t device = 0; device < devices(); ++device) {
      for (size_t i = 0; i < program_.arguments.size(); ++i) {
        if (program_.donated[i] && !IsKept(args.options, i)) args.argument_lists[device][i]->Donate();
      }
    }
  }

  // The memory of a device's result, which is valid when the run has ended.
  const StoragePtr& result(size_t device, size_t i) const { return results_[device][i]; }

  void Run() {
    if (!memory(0).is_on_host()) return RunOnAccelerators();
    JoinArguments();
    RunProgram();
    CutResults();
  }

 private:
  size_t devices() const { return memories_.size(); }
  Memory& memory(size_t device) const { return *memories_[device]; }

  // The addresses that one run receives: arguments, optionally the number of its device, and results.
  std::vector<void*> Addresses(size_t run) {
    std::vector<void*> addresses;
    for (size_t i = 0; i < program_.arguments.size(); ++i) {
      addresses.push_back((joined_[i] != nullptr ? joined_[i] : arguments_[run][i])->data());
    }
    if (program_.has_device) addresses.push_back(&numbers_[run]);
    for (size_t i = 0; i < program_.results.size(); ++i) addresses.push_back(Result(run, i)->data());
    return addresses;
  }

  // What drives accelerators joins and cuts arrays, too.
  void RunOnAccelerators() {
    std::vector<void*> addresses;
    for (size_t device = 0; device < devices(); ++device) {
      for (StoragePtr& argument : arguments_[device]) {
        argument = Placed(std::move(argument), memory(device));
        addresses.push_back(argument->data());
      }
    }
    for (const auto& results : results_) {
      for (const StoragePtr& result : results) addresses.push_back(result->data());
    }
    program_.Run(addresses.data(), hosts_[0]);
  }

  void RunProgram() {
    for (size_t run = 0; run < runs_; ++run) numbers_.push_back(static_cast<uint32_t>(run));
    if (program_.is_shared) return program_.Run(Addresses(0).data(), hosts_[0]);
    Communicator communicator(static_cast<int>(runs_));
    std::optional<Failure> failure;  // the first one: the failures of others that waited in vain follow from it
    std::mutex mutex;
    const auto run = [&](size_t device, std::vector<void*> addresses) {
      const DeviceScope scope(&communicator, static_cast<int64_t>(device));
      try {
        program_.Run(addresses.data(), hosts_[device]);
      } catch (const Failure& found) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = found;
      }
    };
    std::vector<std::vector<void*>> addresses;
    for (size_t device = 0; device < runs_; ++device) addresses.push_back(Addresses(device));
    std::vector<std::thread> threads;
    const bool in_turn = !program_.exchanges && program_.is_quick(runs_);
    for (size_t device = 1; device < runs_ && !in_turn; ++device) threads.emplace_back(run, device, addresses[device]);
    run(0, addresses[0]);
    for (size_t device = 1; device < runs_ && in_turn; ++device) run(device, addresses[device]);
    for (std::thread& thread : threads) thread.join();
    if (failure) throw *failure;
  }

  // Cuts what each device has out of wholes, if the program returned wholes.
  void CutResults() {
    for (size_t i = 0; i < program_.results.size(); ++i) {
      const Piece& piece = program_.result_pieces[i];
      for (size_t device = 0; device < devices(); ++device) {
        const size_t run = program_.is_shared ? 0 : device;
        if (wholes_[run].count(i) != 0) Cut(wholes_[run][i], piece, device, results_[device][i]);
        if (wholes_[run].count(i) == 0 && run != device) Cut(results_[run][i], piece, device, results_[device][i]);
      }
    }
  }

  void JoinArguments() {
    for (size_t i = 0; i < program_.arguments.size(); ++i) {
      const Piece& piece = program_.argument_pieces[i];
      StoragePtr& joined = joined_.emplace_back();
      if (!piece.is_whole || piece.is_everywhere()) continue;
      joined = Storage::Allocate(memory(0), piece.whole.bytes());
      for (size_t device = 0; device < devices(); ++device) Join(arguments_[device][i], joined, piece, device);
    }
  }

  const StoragePtr& Result(size_t run, size_t i) {
    const Piece& piece = program_.result_pieces[i];
    if (!piece.is_whole || piece.is_everywhere()) return results_[run][i];
    return wholes_[run][i] = Storage::Allocate(memory(run), piece.whole.bytes());
  }

  const std::vector<HostSide> hosts_;  // by device
  const std::shared_ptr<CompiledProgram> owner_;
  CompiledProgram& program_;
  std::vector<Memory*> memories_;
  const size_t runs_;
  std::vector<std::vector<StoragePtr>> arguments_, results_;
  std::vector<StoragePtr> joined_;  // by argument; null if devices hold the form that the program takes
  std::vector<std::map<size_t, StoragePtr>> wholes_;
  std::vector<uint32_t> numbers_;
};

// When a device has done its part of a run: each accelerator works on its own.
Readiness ReadinessOf(Device& device, const Readiness& first, bool is_first) {
  if (is_first || device.accelerator == nullptr) return first;
  std::vector<CompletionPtr> told;
  if (first.for_device != nullptr) told.push_back(first.for_device);
  return device.Start(true, std::move(told), [] {});
}

}  // namespace

void ExecuteOnDevices(LoadedExecutable_Execute_Args& args) {
  LoadedExecutable& executable = *args.executable;
  CompiledProgram& program = *executable.program;
  Require(args.execute_device == nullptr, "a program of several devices cannot be run on one of them");
  std::vector<CompletionPtr> inputs;
  std::vector<HostSide> hosts;
  for (size_t device = 0; device < args.num_devices; ++device) {
    Buffer* const* arguments = args.num_args == 0 ? nullptr : args.argument_lists[device];
    CheckArguments(program, arguments, args.num_args, args.options);
    CheckMemories(program, *executable.devices[device], arguments, args.num_args);
    for (CompletionPtr& pending : Pending(arguments, args.num_args, *executable.devices[device])) inputs.push_back(std::move(pending));
    hosts.push_back(HostSideOf(program, args.options, device));
  }
  const auto run = std::make_shared<DividedRun>(executable.program, executable.devices, std::move(hosts));
  run->Take(args);
  const Readiness first = executable.devices[0]->Start(program.is_quick(), std::move(inputs), [run] { run->Run(); });
  for (size_t device = 0; device < args.num_devices; ++device) {
    const Readiness ready = ReadinessOf(*executable.devices[device], first, device == 0);
    const CompletionPtr& done = ready.for_all;
    if (args.options != nullptr) executable.devices[device]->launches.Add(args.options->launch_id, done);
    Memory& memory = executable.devices[device]->default_memory();
    for (size_t i = 0; i < program.results.size(); ++i) {
      args.output_lists[device][i] = new Buffer(&memory, program.results[i], run->result(device, i), ready);
    }
    if (args.device_complete_events != nullptr) args.device_complete_events[device] = NewEvent(done);
  }
}

}  // namespace trivium::pjrt
