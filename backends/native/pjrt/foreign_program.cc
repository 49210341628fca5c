// Programs as foreign functions: another host that has XLA's typed interface, such as JAX's CPU platform, runs a program on its own buffers
// by `trivium_call_program`. Its custom call says which program. The host's executable keeps the program: as the state of its call, which
// `trivium_instantiate_program` sets.

#include <array>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "../float_mode.h"
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
  void* owner;  // the Python object that entry and context belong to, and a reference to it
  int64_t number;
  std::string name;
  pjrt::ArenaPool arenas;
  int64_t references = 1;  // guarded by RuntimeLock()
};

constexpr int32_t kToken = 17;  // the DataType of values that only order calls

// The programs of this process by their numbers, guarded by RuntimeLock(). Hosts may keep custom calls in files, but an address is valid in
// one process (and its forks), and only as long as the program lives.
std::unordered_map<int64_t, ForeignProgram*>& Programs() {
  static auto* const programs = new std::unordered_map<int64_t, ForeignProgram*>;
  return *programs;
}

// A number that no program of any process has.
int64_t NewNumber() {
  std::random_device random;
  return int64_t{random() >> 1} << 32 | random();
}

void Release(void* object) {
  auto* const program = static_cast<ForeignProgram*>(object);
  {
    const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
    if (--program->references > 0) return;
    Programs().erase(program->number);
  }
  ReleaseLater(program->owner);
  delete program;
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

ForeignProgram* Program(const CallFrame& frame) { return reinterpret_cast<ForeignProgram*>(Number(frame.attrs, 1)); }

// Adds a reference to the program of a call, if it lives.
bool Keep(const CallFrame& frame) {
  const std::lock_guard<std::mutex> lock(pjrt::RuntimeLock());
  const auto found = Programs().find(Number(frame.attrs, 0));
  if (found == Programs().end() || found->second != Program(frame)) return false;
  ++found->second->references;
  return true;
}

TypeId type{};
const TypeInfo type_info{{sizeof(TypeInfo), nullptr}, Release};

// Makes the program the state of the call.
Error* SetState(const CallFrame& frame) {
  Type_Register_Args known{};
  known.struct_size = sizeof(known);
  known.name = {"trivium_program", 15};
  known.type_id = &type;
  known.type_info = &type_info;
  if (Error* error = frame.api->Type_Register(&known)) return error;
  if (frame.api->api_version.minor_version < kFirstWithStages) {
    OldState_Args args{{sizeof(OldState_Args), nullptr}, frame.ctx, &type, Program(frame)};
    return frame.api->State_Set(reinterpret_cast<State_Set_Args*>(&args));
  }
  State_Set_Args args{{sizeof(State_Set_Args), nullptr}, frame.ctx, ExecutionStage_INSTANTIATE, &type, Program(frame)};
  return frame.api->State_Set(&args);
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
  const StandardFloats mode;
  if (program.entry(addresses, arena.data(), program.context) == 0) return;
  const std::string reason = TakeException();
  throw pjrt::Failure(pjrt::Error_Code_INTERNAL, reason.empty() ? program.name + " ended early" : reason);
}

}  // namespace
}  // namespace trivium::ffi

// Returns a program's address for custom calls, which is valid until it is released and no call of it is left. `owner` is the Python object
// that entry and context belong to, and a reference to it, which is then given up.
TRIVIUM_EXPORT void* trivium_new_program(trivium::ffi::Entry* entry, void** context, void* owner, size_t arena_size, size_t arena_alignment,
                                         const char* name) {
  using namespace trivium::ffi;
  trivium::pjrt::RegisterRuntimeLock();
  auto* const program = new ForeignProgram{entry, context, owner, NewNumber(), name, {arena_size, arena_alignment}};
  const std::lock_guard<std::mutex> lock(trivium::pjrt::RuntimeLock());
  Programs().emplace(program->number, program);
  return program;
}

TRIVIUM_EXPORT int64_t trivium_number_of_program(const void* program) { return static_cast<const trivium::ffi::ForeignProgram*>(program)->number; }

TRIVIUM_EXPORT void trivium_release_program(void* program) { trivium::ffi::Release(program); }

// The type of a call's state, and how it is deleted, for hosts that want to know them before the first call.
TRIVIUM_EXPORT trivium::ffi::TypeId* trivium_program_type() { return &trivium::ffi::type; }

TRIVIUM_EXPORT const trivium::ffi::TypeInfo* trivium_program_type_info() { return &trivium::ffi::type_info; }

// The entry of a program that Python runs: calls the Python function in its context, with the address of the pointers.
TRIVIUM_EXPORT int32_t trivium_run_in_python(void** pointers, void*, void** context) { return trivium::CallPython(context[0], 0, pointers); }

// The handler of the first stage. Attributes of calls, in the order of their names: `number` and `program`.
TRIVIUM_EXPORT trivium::ffi::Error* trivium_instantiate_program(trivium::ffi::CallFrame* frame) {
  using namespace trivium::ffi;
  if (frame->extension_start != nullptr) return Describe(*frame);
  if (!Keep(*frame)) {
    return Failed(*frame, trivium::pjrt::Error_Code_FAILED_PRECONDITION,
                  "the program was compiled by Trivium in another process, or has been freed: trivium.jit compiles it in each process");
  }
  Error* const error = SetState(*frame);
  if (error != nullptr) Release(Program(*frame));
  return error;
}

// The handler of calls.
TRIVIUM_EXPORT trivium::ffi::Error* trivium_call_program(trivium::ffi::CallFrame* frame) {
  using namespace trivium::ffi;
  if (frame->extension_start != nullptr) return Describe(*frame);
  const auto error = trivium::pjrt::ErrorOf([frame] { Run(*Program(*frame), *frame); });
  return error ? Failed(*frame, error->code, error->message) : nullptr;
}
