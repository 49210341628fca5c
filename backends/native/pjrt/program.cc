#include "program.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "../float_mode.h"
#include "../interpreter.h"
#include "../trace.h"
#include "python_host.h"
#include "queue.h"

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::pjrt {
namespace {

// Null if Python has not started, or has ended.
std::atomic<CompileFunction> compile_function{nullptr};
std::atomic<bool> is_withdrawn{false};  // there was a compiler
std::atomic<ReleaseFunction> release_function{nullptr};
std::atomic<SerializeFunction> serialize_function{nullptr};
std::atomic<TraceFunction> trace_function{nullptr};
std::atomic<OptionsFunction> options_function{nullptr};
std::atomic<DescribeFunction> describe_function{nullptr};

Shape Copied(const SlotType& slot) { return ShapeOf(static_cast<Buffer_Type>(slot.type), slot.dims, static_cast<size_t>(slot.rank)); }

// The nanoseconds that a run takes at least, on one fast processor.
int64_t Estimate(const CompileReply& reply) {
  constexpr double kOperations = 50, kBytes = 10;  // in a nanosecond
  return static_cast<int64_t>(std::clamp(std::max(reply.flops / kOperations, reply.bytes_accessed / kBytes), 0.0, 1e15));
}

// Reads the layouts of arrays of which the program knows the dimensions in the order of memory, and makes these the hosts' arrays.
void TakeLayouts(const char* text, std::vector<Shape>& arguments, std::vector<Shape>& results) {
  std::istringstream words(text == nullptr ? "" : text);
  std::string word;
  if (!(words >> word)) return;
  for (std::vector<Shape>* shapes : {&arguments, &results}) {
    for (Shape& shape : *shapes) {
      Require(!words.fail(), "an array has no layout");
      if (word != "-") shape = InOrder(shape, word);
      words >> word;
    }
  }
  Require(words.fail(), "there are more layouts than arrays");
}

// Reads the digits of bytes. Between the digits of messages, programs have spaces; "-" is an empty message.
std::string FromDigits(std::string_view digits) {
  std::string bytes;
  if (digits == "-") return bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  const bool is_written = digits.size() % 2 == 0 && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  Require(is_written, "the program's bytes are not written in hexadecimal digits");
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(digit(digits[i]) << 4 | digit(digits[i + 1]));
  return bytes;
}

// Reads a piece, and makes `shape` the shape of a part.
Piece Divided(const PieceType& type, Shape& shape, int64_t devices) {
  Piece piece{type.is_whole != 0, shape, shape, {}};
  const size_t rank = shape.dims.size();
  for (size_t i = 0; i < rank * devices; ++i) {
    const int64_t extent = shape.dims[i % rank], part = type.dims[i % rank];
    const bool fits = piece.is_whole ? type.begins[i] >= 0 && part >= 0 && part <= extent - type.begins[i] : part == extent;
    Require(fits, "a part of an array is outside of it");
  }
  for (int64_t device = 0; device < devices; ++device) {
    piece.begins.emplace_back(type.begins + device * rank, type.begins + (device + 1) * rank);
  }
  shape.dims.assign(type.dims, type.dims + rank);
  piece.part = shape;
  if (!piece.is_whole) piece.whole = shape;
  return piece;
}

}  // namespace

CompiledProgram::CompiledProgram(const CompileReply& reply, int64_t replicas, int64_t partitions, std::string_view artifact,
                                 std::string_view description, std::shared_ptr<const void> memory)
    : name(reply.name),
      fingerprint(reply.fingerprint),
      num_replicas(replicas),
      num_partitions(partitions),
      is_shared(reply.is_shared != 0),
      exchanges(reply.exchanges != 0),
      has_device(reply.has_device != 0),
      channels(ReadChannels(reply.transfers)),
      generated_code_size(reply.generated_code_size),
      constant_size(reply.constant_size),
      arena_size(static_cast<int64_t>(reply.arena_size)),
      flops(reply.flops),
      transcendentals(reply.transcendentals),
      bytes_accessed(reply.bytes_accessed),
      reply_(reply),
      artifact_(artifact),
      description_(description),
      memory_(std::move(memory)),
      arenas_(reply.arena_size, reply.arena_alignment),
      nanoseconds_(Estimate(reply)) {
  for (size_t i = 0; i < reply.num_arguments; ++i) arguments.push_back(Copied(reply.slots[i]));
  for (size_t i = 0; i < reply.num_results; ++i) results.push_back(Copied(reply.slots[reply.num_arguments + i]));
  if (reply.pieces != nullptr) {
    const PieceType* piece = reply.pieces;
    for (Shape& argument : arguments) argument_pieces.push_back(Divided(*piece++, argument, num_devices()));
    for (Shape& result : results) result_pieces.push_back(Divided(*piece++, result, num_devices()));
  }
  TakeLayouts(reply.layouts, arguments, results);
  std::istringstream words(reply.shardings == nullptr ? "" : reply.shardings);
  for (std::string word; words >> word;) shardings.push_back(FromDigits(word));
  Require(shardings.empty() || shardings.size() == arguments.size() + results.size(), "its arrays have other shardings");
  for (const Shape& result : results) result_bytes.push_back(result.bytes());
  donated.assign(reply.donated, reply.donated + reply.num_arguments);
  aliases.assign(results.size(), -1);
  for (size_t i = 0; reply.aliases != nullptr && i < reply.num_arguments; ++i) {
    const int32_t result = reply.aliases[i];
    if (result < 0 || !donated[i]) continue;
    const bool fits = static_cast<size_t>(result) < results.size() && aliases[result] < 0;
    Require(fits && arguments[i].bytes() == results[result].bytes(), "a result cannot be in the memory of its argument");
    aliases[result] = static_cast<int32_t>(i);
    has_aliases = true;
  }
}

CompiledProgram::~CompiledProgram() {
  if (memory_ != nullptr) return;
  if (const ReleaseFunction release = release_function.load()) release(reply_.handle);
}

void CompiledProgram::Run(void** addresses, const HostSide& host) {
  const ffi::UserDataScope data(host.data.get());
  const TransferScope transfers(host.transfers.get());
  if (!trace::IsOn()) return Enter(addresses);
  CompiledProgram* traced = Traced();
  const trace::Span span(name, untraced_reason_);
  (traced == nullptr ? this : traced)->Enter(addresses);
}

CompiledProgram* CompiledProgram::Traced() {
  std::call_once(traced_once_, [this] {
    const TraceFunction trace = trace_function.load();
    CompileReply reply{};
    std::string failure;
    if (reply_.entry == nullptr) {
      untraced_reason_ = "its launches are unknown: they are not traced on this device";
    } else if (trace == nullptr || memory_ != nullptr) {
      untraced_reason_ = "its launches are unknown: it was loaded without its module";
    } else if (trace(reply_.handle, &reply, &failure) != 0) {
      untraced_reason_ = "its launches are unknown: " + failure;
    } else {
      traced_ = std::make_shared<CompiledProgram>(reply, num_replicas, num_partitions);
    }
  });
  return traced_.get();
}

void CompiledProgram::Enter(void** addresses) {
  const Queue::Inside inside;
  const auto start = std::chrono::steady_clock::now();
  const int32_t status = Call(addresses);
  nanoseconds_.store(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count(), std::memory_order_relaxed);
  if (status == 0) return;
  TransferScope::ThrowFailure();
  const std::string reason = TakeException();
  throw Failure(Error_Code_INTERNAL, reason.empty() ? name + " ended early" : reason);
}

int32_t CompiledProgram::Call(void** addresses) {
  if (reply_.entry == nullptr) {
    Accelerator::Run(reply_.handle, addresses, (arguments.size() + results.size()) * num_devices());
    return 0;
  }
  const ArenaPool::Arena arena(arenas_, name);
  const StandardFloats mode;
  return reply_.entry(addresses, arena.data(), reply_.context);
}

std::string CompiledProgram::Serialized() const {
  if (memory_ != nullptr) return std::string(artifact_);
  const SerializeFunction serialize = serialize_function.load();
  if (serialize == nullptr) throw Failure(Error_Code_UNIMPLEMENTED, "executables are serialized in a process with Python only");
  std::string bytes, failure;
  if (const int32_t status = serialize(reply_.handle, &bytes, &failure)) {
    throw Failure(static_cast<Error_Code>(status), failure.empty() ? name + " cannot be serialized" : failure);
  }
  return bytes;
}

std::shared_ptr<const std::string> CompiledProgram::Described() const {
  {
    const std::lock_guard<std::mutex> lock(described_mutex_);
    if (described_ != nullptr) return described_;
  }
  // Without the lock: Python may let another thread run that waits for it.
  auto bytes = std::make_shared<const std::string>(Describe());
  const std::lock_guard<std::mutex> lock(described_mutex_);
  if (described_ == nullptr) described_ = std::move(bytes);
  return described_;
}

std::string CompiledProgram::Describe() const {
  if (memory_ != nullptr) {
    if (description_.empty()) throw Failure(Error_Code_UNIMPLEMENTED, name + " was serialized without its optimized program");
    return FromDigits(description_);
  }
  const DescribeFunction describe = describe_function.load();
  if (describe == nullptr) throw Failure(Error_Code_UNIMPLEMENTED, "optimized programs are shown in a process with Python only");
  std::string bytes, failure;
  if (const int32_t status = describe(reply_.handle, &bytes, &failure)) {
    throw Failure(static_cast<Error_Code>(status), failure.empty() ? name + " cannot be shown" : failure);
  }
  return bytes;
}

void CompiledProgram::ForgetDescribed() const {
  const std::lock_guard<std::mutex> lock(described_mutex_);
  described_.reset();
}

namespace {

// The compiler. Python registers it, at the latest now.
CompileFunction Compiler() {
  if (const CompileFunction compile = compile_function.load()) return compile;
  if (is_withdrawn.load()) throw Failure(Error_Code_FAILED_PRECONDITION, "there is no compiler any more: Python has ended");
  RegisterCompiler();
  if (const CompileFunction compile = compile_function.load()) return compile;
  throw Failure(Error_Code_FAILED_PRECONDITION, "Python has loaded another copy of the plugin, and compiles for that one: its own is expected");
}

}  // namespace

void CheckNamedOptions(std::string_view options) {
  Compiler();  // starts Python, which registers the function
  const OptionsFunction check = options_function.load();
  std::string failure;
  if (const int32_t status = check == nullptr ? 0 : check(options.data(), options.size(), &failure)) {
    throw Failure(static_cast<Error_Code>(status), failure.empty() ? "the compiler rejects an option without giving a reason" : failure);
  }
}

std::shared_ptr<CompiledProgram> Compile(std::string_view code, std::string_view format, int64_t replicas, int64_t partitions,
                                         const std::string& accelerators, const std::string& options) {
  const CompileFunction compile = Compiler();
  const char* devices = accelerators.empty() ? nullptr : accelerators.c_str();
  const CompileRequest request{code.data(), code.size(), format.data(), format.size(), replicas, partitions, devices, options.c_str()};
  CompileReply reply{};
  std::string failure;
  if (const int32_t status = compile(&request, &reply, &failure)) {
    throw Failure(static_cast<Error_Code>(status), failure.empty() ? "the compiler failed without giving a reason" : failure);
  }
  return std::make_shared<CompiledProgram>(reply, replicas, partitions);
}

}  // namespace trivium::pjrt

// Null for both removes the compiler: later compilations fail with an error, and compiled programs are kept until the process ends.
TRIVIUM_EXPORT void trivium_pjrt_set_compiler(trivium::pjrt::CompileFunction compile, trivium::pjrt::ReleaseFunction release) {
  trivium::pjrt::is_withdrawn.store(compile == nullptr);
  trivium::pjrt::compile_function.store(compile);
  trivium::pjrt::release_function.store(release);
}

// The same for the function that serializes compiled programs.
TRIVIUM_EXPORT void trivium_pjrt_set_serializer(trivium::pjrt::SerializeFunction serialize) {
  trivium::pjrt::serialize_function.store(serialize);
}

// The same for the function that compiles programs to be traced.
TRIVIUM_EXPORT void trivium_pjrt_set_tracer(trivium::pjrt::TraceFunction trace) { trivium::pjrt::trace_function.store(trace); }

// The same for the function that checks options of the compiler.
TRIVIUM_EXPORT void trivium_pjrt_set_options_check(trivium::pjrt::OptionsFunction check) { trivium::pjrt::options_function.store(check); }

// The same for the function that returns optimized programs.
TRIVIUM_EXPORT void trivium_pjrt_set_describer(trivium::pjrt::DescribeFunction describe) {
  trivium::pjrt::describe_function.store(describe);
}

// Receives the bytes of a serialized or optimized program.
TRIVIUM_EXPORT void trivium_pjrt_write(void* sink, const char* data, size_t size) { static_cast<std::string*>(sink)->append(data, size); }

// Receives the reason why a compilation fails.
TRIVIUM_EXPORT void trivium_pjrt_fail(void* failure, const char* message, size_t size) {
  static_cast<std::string*>(failure)->assign(message, size);
}
