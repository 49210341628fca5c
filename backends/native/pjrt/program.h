// Compiled programs, and the compiler, which is Python's: it registers one function, which takes a module and returns machine code.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator.h"
#include "arena_pool.h"
#include "foreign_registry.h"
#include "shape.h"
#include "transfers.h"

namespace trivium::pjrt {

// Three structures that backends/plugin/structures.py also declares.

struct CompileRequest {
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
  int64_t num_replicas;
  int64_t num_partitions;
  const char* devices;  // accelerators, such as "cuda:0", a line each; null for this machine's processors
  const char* options;  // such as "fast_math=1", a line each
};

struct SlotType {
  int32_t type;  // a Buffer_Type
  int32_t rank;
  const int64_t* dims;
};

// How devices hold an argument or a result of a program of several devices.
struct PieceType {
  int32_t is_whole;       // the program has all of it, not the part of one device
  const int64_t* dims;    // of a part
  const int64_t* begins;  // for each device, the start of its part
};

// The result of a compilation. Machine code and context are in use until `handle` is released; everything else is copied immediately.
struct CompileReply {
  uint64_t handle;
  int32_t (*entry)(void** arguments, void* arena, void** context);  // null for a program of an accelerator
  void** context;
  size_t arena_size;
  size_t arena_alignment;
  size_t num_arguments;
  size_t num_results;
  const SlotType* slots;   // of the arguments, then of the results
  const uint8_t* donated;  // for each argument, whether a run may reuse its memory
  const int32_t* aliases;  // for each argument, the result that may be in its memory, or -1; null if there are none
  const char* name;
  const char* fingerprint;
  int64_t generated_code_size;
  int64_t constant_size;
  double flops;
  double transcendentals;
  double bytes_accessed;
  const PieceType* pieces;  // of the arguments, then of the results; null for a program of one device
  int32_t is_shared;        // one run is for all devices; otherwise each device runs the program
  int32_t exchanges;        // devices wait for what others send
  int32_t has_device;       // after its arguments, the program receives the number of the device
  const char* shardings;    // of the arguments and results, as backends/plugin/shardings.py writes them; null for a program of one device
  const char* transfers;    // its channels to the host, as backends/interface.py writes them; null if there are none
  const char* layouts;      // as backends/plugin/layouts.py writes them; null if all arrays are row-major
};

// Returns an Error_Code; if it is not 0, the reason has been passed to `trivium_pjrt_fail(failure, ...)`.
using CompileFunction = int32_t (*)(const CompileRequest* request, CompileReply* reply, void* failure);
// Compiles a program again, so that its machine code tells of each launch (trace.h). Returns the same as `CompileFunction`.
using TraceFunction = int32_t (*)(uint64_t handle, CompileReply* reply, void* failure);

using ReleaseFunction = void (*)(uint64_t handle);

// Receives XLA's CompileOptionsProto, if it names options of the compiler. Returns the same as `CompileFunction`.
using OptionsFunction = int32_t (*)(const char* options, size_t size, void* failure);

// Passes the artifact of a program, constants included, to `trivium_pjrt_write(sink, ...)`. Returns the same as `CompileFunction`.
using SerializeFunction = int32_t (*)(uint64_t handle, void* sink, void* failure);

// Passes the optimized program to `trivium_pjrt_write(sink, ...)`, in XLA's format `hlo_with_config`. Returns the same.
using DescribeFunction = SerializeFunction;

// An argument or result of which each device has a part.
struct Piece {
  bool is_whole;
  Shape whole;  // in the program
  Shape part;   // of a device
  std::vector<std::vector<int64_t>> begins;

  // Whether every device has all of it.
  bool is_everywhere() const { return part == whole; }
};

// What a run receives from its host besides arrays: data for foreign functions, and callbacks for its channels. Null if there are none.
struct HostSide {
  ffi::UserDataPtr data;
  TransfersPtr transfers;
};

// Machine code with everything that it needs to run. Runs may overlap: each has an arena of its own.
class CompiledProgram {
 public:
  // If `memory` is given, it holds everything that the reply points to, including the program's artifact and its `description`, and Python
  // owns none of it.
  CompiledProgram(const CompileReply& reply, int64_t replicas, int64_t partitions, std::string_view artifact = {},
                  std::string_view description = {}, std::shared_ptr<const void> memory = nullptr);
  ~CompiledProgram();
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  // Runs on the addresses of arguments and then of results. Throws if the run ends early. While a profiler listens, it hears of the run,
  // and of its launches.
  void Run(void** addresses, const HostSide& host);

  // Whether a run, or several one after the other, take less time than it is worth to hand it to another thread, as far as is known: by the last run, or by its costs. A
  // program that exchanges values with its host may wait for what the host does next.
  bool is_quick() const { return is_quick(1); }
  bool is_quick(size_t runs) const {
    return channels.empty() && nanoseconds_.load(std::memory_order_relaxed) * static_cast<int64_t>(runs) < kWorthQueueing;
  }

  // Its artifact, for `LoadArtifact` (serialization.h).
  std::string Serialized() const;

  // The optimized program, for hosts that show it, in XLA's format `hlo_with_config`. It is made when it is first needed.
  std::shared_ptr<const std::string> Described() const;

  // Forgets it until it is needed again.
  void ForgetDescribed() const;

  const std::string name;
  const std::string fingerprint;
  std::string compile_options;  // with which it was compiled, as its caller serialized them; set once, before anybody sees the program
  const int64_t num_replicas, num_partitions;
  int64_t num_devices() const { return num_replicas * num_partitions; }
  // Whether one run is for all devices, whether runs of several devices exchange values, and whether a run receives its device.
  const bool is_shared, exchanges, has_device;
  // In the form in which devices hold them.
  std::vector<Shape> arguments;
  std::vector<Shape> results;
  // For several devices only.
  std::vector<Piece> argument_pieces, result_pieces;
  std::vector<std::string> shardings;  // of the arguments, then of the results: XLA's `OpSharding`, serialized
  std::vector<size_t> result_bytes;
  std::vector<bool> donated;
  std::vector<int32_t> aliases;  // for each result, the argument in whose memory it may be, or -1
  bool has_aliases = false;
  const std::vector<Channel> channels;
  int64_t generated_code_size, constant_size, arena_size;
  double flops, transcendentals, bytes_accessed;

 private:
  void Enter(void** addresses);
  int32_t Call(void** addresses);
  CompiledProgram* Traced();
  std::string Describe() const;

  // An estimate: handing a run over, and waiting for it in the first thread, takes 10 to 20 us, a tenth of this.
  static constexpr int64_t kWorthQueueing = 200'000;

  const CompileReply reply_;
  const std::string_view artifact_, description_;
  const std::shared_ptr<const void> memory_;
  ArenaPool arenas_;
  std::atomic<int64_t> nanoseconds_;
  std::once_flag traced_once_;
  std::shared_ptr<CompiledProgram> traced_;  // null if it cannot be traced
  std::string untraced_reason_;
  mutable std::mutex described_mutex_;
  mutable std::shared_ptr<const std::string> described_;
};

// Throws if the compiler's host does not know an option that XLA's CompileOptionsProto names.
void CheckNamedOptions(std::string_view options);

// Compiles for accelerators, whose names are a line each, or for this machine's processors if there are none, with options, a line each, too.
// Throws if no compiler is registered, and the compiler's reason if it rejects the program.
std::shared_ptr<CompiledProgram> Compile(std::string_view code, std::string_view format, int64_t replicas, int64_t partitions,
                                         const std::string& accelerators, const std::string& options);

}  // namespace trivium::pjrt
