// Loads an artifact as a program that can run: machine code by dlopen from a file in memory, constants in place in the artifact.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "../artifact_reader.h"
#include "../processor.h"
#include "serialization.h"

extern "C" int trivium_runtime_version();

namespace trivium::pjrt {
namespace {

using artifact::Damaged;
using artifact::Reader;

constexpr size_t kPage = 4096;
constexpr uint64_t kLargest = uint64_t{1} << 48;  // more than a machine can address

// Memory at the start of a page, so that aligned parts of an artifact are aligned in memory too.
struct Free {
  void operator()(char* data) const { std::free(data); }
};
using Pages = std::unique_ptr<char, Free>;

Pages Copied(std::string_view bytes) {
  Pages pages(static_cast<char*>(std::aligned_alloc(kPage, (bytes.size() / kPage + 1) * kPage)));
  if (pages == nullptr) throw std::bad_alloc();
  std::memcpy(pages.get(), bytes.data(), bytes.size());
  return pages;
}

// A shared object, loaded from its bytes.
class Library {
 public:
  explicit Library(std::string_view code) {
    const int file = memfd_create("trivium", MFD_CLOEXEC);
    if (file < 0) throw Failure(Error_Code_INTERNAL, "the machine code cannot be loaded: the system has no files in memory");
    for (size_t written = 0; written < code.size();) {
      const ssize_t count = write(file, code.data() + written, code.size() - written);
      if (count <= 0) break;
      written += static_cast<size_t>(count);
    }
    handle_ = dlopen(Path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    close(file);
    if (handle_ == nullptr) throw Failure(Error_Code_INTERNAL, std::string("the machine code cannot be loaded: ") + dlerror());
  }

  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void* address(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) throw Damaged(std::string("its machine code has no function ") + name);
    return found;
  }

 private:
  // A different path for each load: the dynamic linker takes a library that it knows for any later one with the same path, and descriptors
  // are reused. The separators encode the digits of a number. Python, which does the same (backends/cpu/code.py), uses paths with another
  // prefix.
  static std::string Path(int file) {
    static std::atomic<uint64_t> loads{0};
    std::string path = "/proc/./self/fd/";
    for (uint64_t number = ++loads; number > 0; number /= 2) path += number % 2 ? "./" : "/";
    return path + std::to_string(file);
  }

  void* handle_ = nullptr;
};

// Functions of this library that programs call by address. The linker looks them up in the library itself, however it was loaded.
void* RuntimeFunction(const std::string& name) {
  Dl_info info{};
  void* found = nullptr;
  if (name.rfind("trivium_", 0) == 0 && dladdr(reinterpret_cast<void*>(&trivium_runtime_version), &info) != 0) {
    if (void* self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)) {
      found = dlsym(self, name.c_str());
      dlclose(self);
    }
  }
  if (found == nullptr) throw Damaged("it calls " + name + ", which the native runtime does not have");
  return found;
}

void RequireMachine(const Reader& reader) {
  const artifact::Header& header = reader.header();
  if (header.runtime != static_cast<uint32_t>(trivium_runtime_version())) {
    throw Failure(Error_Code_FAILED_PRECONDITION, "the program was compiled for version " + std::to_string(header.runtime) +
                                                      " of the native runtime, and this is version " +
                                                      std::to_string(trivium_runtime_version()));
  }
  const std::string_view triple = reader.text(header.triple);
  std::string reason;
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__linux__)
#if defined(__x86_64__)
  const std::string here = "x86_64";
#else
  const std::string here = "aarch64";
#endif
  if (!triple.starts_with(here + "-") || triple.find("linux") == std::string_view::npos) reason = "this machine is " + here + " with Linux";
#else
  reason = "programs for this kind of machine are loaded by Python only";
#endif
  if (reason.empty()) {
    const std::string lacking = LackingFeatures(reader.text(header.features));
    if (!lacking.empty()) reason = "this processor has no " + lacking;
  }
  if (reason.empty()) return;
  throw Failure(Error_Code_FAILED_PRECONDITION, "the program was compiled for " + std::string(reader.text(header.cpu)) + " (" +
                                                    std::string(triple) + "): " + reason);
}

double Number(const Reader& reader, std::string_view name) { return std::strtod(std::string(reader.about(name)).c_str(), nullptr); }

// How several devices run a program: the numbers that backends/plugin/division.py writes.
class Division {
 public:
  explicit Division(const Reader& reader) : shardings(reader.about("shardings")), rest_(reader.about("division")) {
    if (rest_.empty()) return;
    replicas = Number(kMostDevices);
    partitions = Number(kMostDevices);
    is_shared = Number(1) != 0;
    exchanges = Number(1) != 0;
    has_device = Number(1) != 0;
    for (size_t* const count : {&arguments, &results}) {
      *count = static_cast<size_t>(Number(kLargest));
      for (size_t i = 0; i < *count; ++i) ReadPiece();
    }
    if (!rest_.empty()) throw Damaged("it has more numbers than its devices need");
  }

  bool is_one() const { return replicas * partitions == 1; }

  // Fills in the reply, whose arrays have the sizes in `slots`, and which points into this object.
  void Fill(CompileReply& reply) {
    if (is_one()) return;
    if (arguments != reply.num_arguments || results != reply.num_results) throw Damaged("its devices have other arrays");
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Place& piece = pieces_[i];
      const SlotType& slot = reply.slots[i];
      if (piece.dims.size() != static_cast<size_t>(slot.rank)) throw Damaged("its devices have arrays of other ranks");
      types_.push_back({piece.is_whole, piece.dims.data(), piece.begins.data()});
    }
    reply.pieces = types_.data();
    reply.shardings = shardings.c_str();
    reply.is_shared = is_shared;
    reply.exchanges = exchanges;
    reply.has_device = has_device;
  }

  int64_t replicas = 1, partitions = 1;
  bool is_shared = false, exchanges = false, has_device = false;
  size_t arguments = 0, results = 0;
  const std::string shardings;

 private:
  static constexpr uint64_t kMostDevices = 1024;

  struct Place {
    bool is_whole;
    std::vector<int64_t> dims, begins;
  };

  int64_t Number(uint64_t most) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number > most) throw Damaged("the numbers of its devices are wrong");
    rest_.remove_prefix(end - rest_.data());
    if (!rest_.empty()) rest_.remove_prefix(1);
    return static_cast<int64_t>(number);
  }

  void ReadPiece() {
    Place& piece = pieces_.emplace_back(Place{Number(1) != 0, {}, {}});
    const int64_t rank = Number(kLargest);
    for (int64_t i = 0; i < rank; ++i) piece.dims.push_back(Number(kLargest));
    for (int64_t i = 0; i < rank * replicas * partitions; ++i) piece.begins.push_back(Number(kLargest));
  }

  std::string_view rest_;
  std::vector<Place> pieces_;
  std::vector<PieceType> types_;

};

}  // namespace

// Everything that a program from an artifact uses.
class ArtifactMemory {
 public:
  explicit ArtifactMemory(std::string_view bytes) : size_(bytes.size()), pages_(Copied(bytes)), reader_(pages_.get(), size_), division_(reader_) {
    RequireMachine(reader_);
    for (const artifact::HostCall& call : reader_.list<artifact::HostCall>(reader_.header().host_calls)) {
      context_.push_back(RuntimeFunction(std::string(reader_.text(call.function))));
      context_.push_back(nullptr);
    }
    for (const artifact::Constant& constant : reader_.list<artifact::Constant>(reader_.header().constants)) Embed(constant);
    library_ = std::make_unique<Library>(reader_.bytes(reader_.header().code));
  }

  std::string_view bytes() const { return {pages_.get(), size_}; }
  const Division& division() const { return division_; }
  std::string_view description() const { return reader_.about("hlo"); }

  // Points into this object.
  CompileReply Reply() {
    const artifact::Header& header = reader_.header();
    if (header.arena_alignment == 0 || header.arena_alignment > kPage || (header.arena_alignment & (header.arena_alignment - 1)) != 0) {
      throw Damaged("its arena is aligned to " + std::to_string(header.arena_alignment));
    }
    if (header.arena_bytes >= kLargest) throw Damaged("its arena has " + std::to_string(header.arena_bytes) + " bytes");
    const size_t inputs = header.inputs.count - (division_.has_device && header.inputs.count > 0 ? 1 : 0);
    Slots(header.inputs, inputs);
    Slots(header.outputs, header.outputs.count);
    donated_.assign(inputs, 0);
    const std::string_view marks = reader_.about("donated");
    for (size_t i = 0; i < std::min(inputs, marks.size()); ++i) donated_[i] = marks[i] == '1';
    aliases_.assign(inputs, -1);
    std::istringstream results{std::string(division_.is_one() ? reader_.about("aliases") : "")};
    int32_t result = 0;
    for (size_t i = 0; i < inputs && results >> result; ++i) aliases_[i] = result;
    name_ = reader_.text(header.name);
    fingerprint_ = reader_.about("fingerprint");
    CompileReply reply{};
    reply.entry = reinterpret_cast<decltype(reply.entry)>(library_->address("trivium_entry"));
    reply.context = context_.data();
    reply.arena_size = header.arena_bytes;
    reply.arena_alignment = header.arena_alignment;
    reply.num_arguments = inputs;
    reply.num_results = header.outputs.count;
    reply.slots = slots_.data();
    reply.donated = donated_.data();
    reply.aliases = aliases_.data();
    reply.name = name_.c_str();
    reply.fingerprint = fingerprint_.c_str();
    reply.generated_code_size = static_cast<int64_t>(header.code.count);
    reply.constant_size = constant_size_;
    reply.flops = Number(reader_, "flops");
    reply.transcendentals = Number(reader_, "transcendentals");
    reply.bytes_accessed = Number(reader_, "bytes accessed");
    transfers_ = reader_.about("transfers");
    reply.transfers = transfers_.c_str();
    layouts_ = reader_.about("layouts");
    reply.layouts = layouts_.c_str();
    division_.Fill(reply);
    return reply;
  }

 private:
  void Embed(const artifact::Constant& constant) {
    if (constant.source != artifact::ConstantSource::kEmbedded || constant.packing.count != 0) {
      throw Failure(Error_Code_INVALID_ARGUMENT, "the program needs the module that it was compiled from: it does not embed its constants");
    }
    const std::string_view data = reader_.bytes(reader_.header().data);
    if (constant.offset > data.size() || constant.source_bytes > data.size() - constant.offset) throw Damaged("a constant ends after its end");
    context_.push_back(const_cast<char*>(data.data()) + constant.offset);
    constant_size_ += static_cast<int64_t>(constant.source_bytes);
  }

  // Of the first `count` values.
  void Slots(const artifact::Span& span, size_t count) {
    std::vector<artifact::Slot> slots = reader_.list<artifact::Slot>(span);
    slots.resize(count);
    for (const artifact::Slot& slot : slots) {
      dims_.push_back(reader_.list<int64_t>(slot.dimensions));
      slots_.push_back({static_cast<int32_t>(slot.type), static_cast<int32_t>(dims_.back().size()), dims_.back().data()});
      const Shape shape = ShapeOf(static_cast<Buffer_Type>(slot.type), dims_.back().data(), dims_.back().size());
      if (shape.bytes() != slot.bytes) throw Damaged("an array of it, " + shape.text() + ", has " + std::to_string(slot.bytes) + " bytes");
    }
  }

  size_t size_;
  Pages pages_;
  Reader reader_;
  Division division_;
  std::vector<void*> context_;
  std::unique_ptr<Library> library_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<SlotType> slots_;
  std::vector<uint8_t> donated_;
  std::vector<int32_t> aliases_;
  std::string name_, fingerprint_, transfers_, layouts_;
  int64_t constant_size_ = 0;
};

namespace {

bool NeedsPython(const Reader& reader) {
  for (const artifact::HostCall& call : reader.list<artifact::HostCall>(reader.header().host_calls)) {
    if (call.kind != artifact::HostCallKind::kNative || !reader.text(call.routine).empty()) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<CompiledProgram> LoadArtifact(std::string_view bytes, const std::string& accelerators) {
  try {
    const Reader reader(bytes.data(), bytes.size());
    if (!accelerators.empty() || NeedsPython(reader)) {
      const Division division(reader);
      return Compile(bytes, kArtifactFormat, division.replicas, division.partitions, accelerators, "");
    }
    auto memory = std::make_shared<ArtifactMemory>(bytes);
    const CompileReply reply = memory->Reply();
    const std::string_view kept = memory->bytes(), description = memory->description();
    const auto [replicas, partitions] = std::pair(memory->division().replicas, memory->division().partitions);
    return std::make_shared<CompiledProgram>(reply, replicas, partitions, kept, description, std::move(memory));
  } catch (const Damaged& damaged) {
    throw Failure(Error_Code_INVALID_ARGUMENT, damaged.what());
  }
}

}  // namespace trivium::pjrt
