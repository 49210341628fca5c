#include "foreign_call.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../interpreter.h"
#include "foreign_api.h"
#include "shape.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::ffi {
namespace {

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

// One value of one run, as seen by the handler.
class Operand {
 public:
  Operand(const ForeignValue& value, void* data) : value_(value), ours_(data) {
    buffer_.struct_size = sizeof(Buffer);
    buffer_.dtype = static_cast<DataType>(value.dtype);
    buffer_.data = data;
    buffer_.rank = value.rank;
    buffer_.dims = value.dims;
    if (value.strides == nullptr) return;
    other_layout_.reset(std::malloc(bytes() + 1));
    if (other_layout_ == nullptr) throw std::bad_alloc();
    buffer_.data = other_layout_.get();
  }

  // Passes the program's value to the handler, in the handler's layout.
  void CopyIn(const void* program_data) { CopyElements(program_data, false, buffer_.data); }

  // Passes the handler's result to the program.
  void CopyOut() {
    if (other_layout_ != nullptr) CopyElements(other_layout_.get(), true, ours_);
  }

  bool has_other_layout() const { return other_layout_ != nullptr; }
  void* program_data() const { return ours_; }
  Buffer* buffer() { return &buffer_; }

 private:
  size_t bytes() const {
    size_t count = value_.element_bytes;
    for (int64_t i = 0; i < value_.rank; ++i) count *= value_.dims[i];
    return count;
  }

  void CopyElements(const void* source, bool from_handler, void* target) const {
    std::vector<int64_t> row_major(value_.rank), handlers;
    int64_t stride = value_.element_bytes;
    for (int64_t i = value_.rank; i-- > 0; stride *= std::max<int64_t>(value_.dims[i], 1)) row_major[i] = stride;
    handlers = value_.strides == nullptr ? row_major : std::vector<int64_t>(value_.strides, value_.strides + value_.rank);
    const auto& from = from_handler ? handlers : row_major;
    const auto& to = from_handler ? row_major : handlers;
    pjrt::CopyStrided({value_.dims, value_.dims + value_.rank}, value_.element_bytes, source, from, target, to);
  }

  const ForeignValue& value_;
  void* ours_;
  std::unique_ptr<void, Freed> other_layout_;
  Buffer buffer_{};
};

void Delete(State& state) {
  if (state.object != nullptr && state.deleter != nullptr) state.deleter(state.object);
  state = {};
}

// A frame with the fields that are the same at every stage.
CallFrame NewFrame(const ForeignCall& call, ExecutionContext& context, ExecutionStage stage) {
  CallFrame frame{};
  // The C header counts the fields up to this one, and handlers require exactly its count.
  frame.struct_size = offsetof(CallFrame, attrs) + sizeof(Attrs);
  frame.api = &ForeignApi();
  frame.ctx = &context;
  frame.stage = stage;
  frame.args.struct_size = sizeof(Args);
  frame.rets.struct_size = sizeof(Rets);
  frame.attrs = *call.attributes;
  return frame;
}

// Calls a handler and waits for it to finish. Throws its error.
void Invoke(Handler* handler, CallFrame& frame) {
  if (std::unique_ptr<Error> error{handler(&frame)}) throw pjrt::Failure(static_cast<pjrt::Error_Code>(error->code), error->message);
  if (frame.future == nullptr) return;
  const std::unique_ptr<Future> future(frame.future);
  pjrt::WaitFor(future->completion);
}

// Deletes what the stages of one run have set; the first one's is the call's.
struct Deleted {
  ExecutionContext& context;

  ~Deleted() {
    for (size_t stage = ExecutionStage_PREPARE; stage < context.states.size(); ++stage) Delete(context.states[stage]);
  }
};

void Execute(const ForeignCall& call, void** pointers) {
  const int64_t count = call.num_arguments + call.num_results;
  std::vector<Operand> operands;
  operands.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    operands.emplace_back(call.values[i], pointers[i]);
    if (i < call.num_arguments && operands[i].has_other_layout()) operands[i].CopyIn(pointers[i]);
  }
  for (int64_t i = call.num_arguments; i < count; ++i) {
    // The handler may read the result before it writes, and the argument must stay unchanged: the result is given a copy.
    const int64_t alias = call.values[i].alias;
    if (alias < 0) continue;
    operands[i].CopyIn(pointers[alias]);
    operands[alias].buffer()->data = operands[i].buffer()->data;
  }
  std::vector<void*> buffers;
  for (Operand& operand : operands) buffers.push_back(operand.buffer());
  std::vector<ArgType> argument_types(call.num_arguments, ArgType_BUFFER);
  std::vector<RetType> result_types(call.num_results, RetType_BUFFER);
  ExecutionContext context;
  const Deleted deleted{context};
  context.user_data = UserDataScope::Current();
  context.states[ExecutionStage_INSTANTIATE] = call.states[ExecutionStage_INSTANTIATE];
  for (const ExecutionStage stage : {ExecutionStage_PREPARE, ExecutionStage_INITIALIZE, ExecutionStage_EXECUTE}) {
    Handler* handler = (&call.handlers.instantiate)[stage];
    if (handler == nullptr) continue;
    CallFrame frame = NewFrame(call, context, stage);
    frame.args.size = call.num_arguments;
    frame.args.types = argument_types.data();
    frame.args.args = buffers.data();
    frame.rets.size = call.num_results;
    frame.rets.types = result_types.data();
    frame.rets.rets = buffers.data() + call.num_arguments;
    Invoke(handler, frame);
  }
  for (int64_t i = call.num_arguments; i < count; ++i) operands[i].CopyOut();
}

// Queries the version of the ABI that the handler was compiled with, and rejects another major version.
void CheckVersion(const ForeignCall& call, ExecutionContext& context) {
  Metadata metadata{};
  metadata.struct_size = offsetof(Metadata, traits) + sizeof(metadata.traits);
  metadata.api_version.struct_size = sizeof(Api_Version);
  Metadata_Extension extension{{sizeof(Metadata_Extension), Extension_Metadata, nullptr}, &metadata};
  CallFrame frame = NewFrame(call, context, ExecutionStage_EXECUTE);
  frame.extension_start = &extension.extension_base;
  Invoke(call.handlers.execute, frame);
  if (metadata.api_version.major_version == kMajorVersion) return;
  throw pjrt::Failure(pjrt::Error_Code_UNIMPLEMENTED, "the handler has version " + std::to_string(metadata.api_version.major_version) +
                                                          " of the interface of foreign functions, expected " + std::to_string(kMajorVersion));
}

// Runs `action`; the text of an exception from it is kept as that of this thread's run.
template <class Action>
int32_t Reported(Action action) noexcept {
  try {
    action();
    return 0;
  } catch (const std::exception& exception) {
    KeepException(exception.what());
    return -1;
  }
}

}  // namespace
}  // namespace trivium::ffi

// Must be called once before the first run of a call: runs the handler's stage for that.
TRIVIUM_EXPORT int32_t trivium_foreign_instantiate(trivium::ffi::ForeignCall* call) {
  return trivium::ffi::Reported([call] {
    trivium::ffi::ExecutionContext context;
    trivium::ffi::CheckVersion(*call, context);
    if (call->handlers.instantiate != nullptr) {
      auto frame = trivium::ffi::NewFrame(*call, context, trivium::ffi::ExecutionStage_INSTANTIATE);
      trivium::ffi::Invoke(call->handlers.instantiate, frame);
    }
    std::copy(context.states.begin(), context.states.end(), call->states);
  });
}

// Must be called once after the last run of a call.
TRIVIUM_EXPORT void trivium_foreign_release(trivium::ffi::ForeignCall* call) {
  for (trivium::ffi::State& state : call->states) trivium::ffi::Delete(state);
}

// A function of the host; see backends/cpu/host.py.
TRIVIUM_EXPORT int32_t trivium_foreign_call(void* routine, void** pointers, const int64_t*) {
  return trivium::ffi::Reported([&] { trivium::ffi::Execute(*static_cast<const trivium::ffi::ForeignCall*>(routine), pointers); });
}
