// Programs as foreign functions: another host that has XLA's typed interface, such as JAX's CPU platform, calls `trivium_call_program` to
// run a program on its own buffers. Its custom call says which program: attributes are its address, and the process that has it.

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../interpreter.h"
#include "abi/ffi.h"
#include "arena_pool.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::ffi {
namespace {

using Entry = int32_t(void** arguments, void* arena, void** context);

struct ForeignProgram {
  Entry* entry;
  void** context;
  std::string name;
  pjrt::ArenaPool arenas;
};

constexpr int32_t kToken = 17;  // the DataType of values that only order calls

// A number that no other process has: hosts may keep custom calls in files, but an address is valid in one process (and its forks).
int64_t Process() {
  static const int64_t number = [] {
    std::random_device random;
    return int64_t{random() >> 1} << 32 | random();
  }();
  return number;
}

Error* Failed(const CallFrame& frame, int32_t code, const std::string& message) {
  Error_Create_Args args{};
  args.struct_size = sizeof(args);
  args.message = message.c_str();
  args.errc = static_cast<Error_Code>(code);
  return frame.api->Error_Create(&args);
}

// Tells the host which version of the interface this is: the host's own, of which only the parts that all versions have in common are used.
Error* Describe(const CallFrame& frame) {
  if (frame.extension_start->type != Extension_Metadata) return nullptr;
  Metadata& metadata = *reinterpret_cast<Metadata_Extension*>(frame.extension_start)->metadata;
  metadata.api_version.major_version = kMajorVersion;
  metadata.api_version.minor_version = frame.api->api_version.minor_version;
  metadata.traits = 0;
  return nullptr;
}

int64_t Number(const Attrs& attributes, int64_t index) {
  return *static_cast<const int64_t*>(static_cast<const Scalar*>(attributes.attrs[index])->value);
}

// Writes the addresses of all buffers but tokens.
void** Append(void** buffers, int64_t count, void** addresses) {
  for (int64_t i = 0; i < count; ++i) {
    const Buffer& buffer = *static_cast<const Buffer*>(buffers[i]);
    if (buffer.dtype != kToken) *addresses++ = buffer.data;
  }
  return addresses;
}

void Run(ForeignProgram& program, const CallFrame& frame) {
  std::array<void*, 64> few;
  std::vector<void*> many;
  const size_t count = static_cast<size_t>(frame.args.size + frame.rets.size);
  if (count > few.size()) many.resize(count);
  void** const addresses = count > few.size() ? many.data() : few.data();
  Append(frame.rets.rets, frame.rets.size, Append(frame.args.args, frame.args.size, addresses));
  const pjrt::ArenaPool::Arena arena(program.arenas, program.name);
  if (program.entry(addresses, arena.data(), program.context) == 0) return;
  const std::string reason = TakeException();
  throw pjrt::Failure(pjrt::Error_Code_INTERNAL, reason.empty() ? program.name + " ended early" : reason);
}

}  // namespace
}  // namespace trivium::ffi

// Returns the program's address for custom calls. Entry and context must live until it is deleted.
TRIVIUM_EXPORT void* trivium_new_program(trivium::ffi::Entry* entry, void** context, size_t arena_size, size_t arena_alignment,
                                         const char* name) {
  trivium::pjrt::RegisterRuntimeLock();
  return new trivium::ffi::ForeignProgram{entry, context, name, {arena_size, arena_alignment}};
}

TRIVIUM_EXPORT void trivium_delete_program(void* program) { delete static_cast<trivium::ffi::ForeignProgram*>(program); }

TRIVIUM_EXPORT int64_t trivium_process() { return trivium::ffi::Process(); }

// The entry of a program that Python runs: calls the Python function in its context, with the address of the pointers.
TRIVIUM_EXPORT int32_t trivium_run_in_python(void** pointers, void*, void** context) { return trivium::CallPython(context[0], 0, pointers); }

// The handler. Its attributes, in the order of their names: `process` and `program`.
TRIVIUM_EXPORT trivium::ffi::Error* trivium_call_program(trivium::ffi::CallFrame* frame) {
  using namespace trivium::ffi;
  if (frame->extension_start != nullptr) return Describe(*frame);
  if (Number(frame->attrs, 0) != Process()) {
    return Failed(*frame, trivium::pjrt::Error_Code_FAILED_PRECONDITION,
                  "the program was compiled by Trivium in another process: trivium.jit compiles it in each process");
  }
  const auto error = trivium::pjrt::ErrorOf([frame] { Run(*reinterpret_cast<ForeignProgram*>(Number(frame->attrs, 1)), *frame); });
  return error ? Failed(*frame, error->code, error->message) : nullptr;
}
