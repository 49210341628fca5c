#include "accelerator.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace trivium::pjrt {
namespace {

// Null if Python has not started, or has ended. What it points to is never freed.
std::atomic<const AcceleratorFunctions*> functions{nullptr};

// Memory to be released.
class Released {
 public:
  // Never destroyed: buffers may be released while the process ends.
  static Released& Get() {
    static Released* const released = new Released;
    return *released;
  }

  void Add(uint64_t memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    memories_.push_back(memory);
  }

  std::vector<uint64_t> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(memories_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> memories_;
};

void Check(int32_t status, const std::string& reason) {
  if (status != 0) throw Failure(static_cast<Error_Code>(status), reason.empty() ? "the device failed without giving a reason" : reason);
}

// Calls one of the functions, and throws what it reports.
template <class... Parameters, class... Arguments>
void Call(int32_t (*AcceleratorFunctions::*function)(Parameters...), Arguments... arguments) {
  const AcceleratorFunctions* const known = functions.load();
  if (known == nullptr) throw Failure(Error_Code_UNAVAILABLE, "there is no driver of devices: Trivium drives them in a process with Python only");
  std::string reason;
  if (const std::vector<uint64_t> released = Released::Get().Take(); !released.empty()) {
    Check(known->release(released.data(), released.size(), &reason), reason);
  }
  Check((known->*function)(arguments..., &reason), reason);
}

uint64_t Number(void* memory) { return reinterpret_cast<uint64_t>(memory); }
void* Handle(uint64_t number) { return reinterpret_cast<void*>(number); }

// An event, once it is known.
class Mark {
 public:
  Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    if (!has_happened()) Inside([this] { return event_.destroy(event_.event); });
  }

  void Set(const std::string& device) { Call(&AcceleratorFunctions::mark, device.c_str(), &event_); }
  bool has_happened() const { return event_.wait == nullptr; }

  void Wait() const {
    const int32_t status = has_happened() ? 0 : Inside([this] { return event_.wait(event_.event); });
    if (status == 0) return;
    throw Failure(Error_Code_INTERNAL, "the device failed while it worked: its driver reports error " + std::to_string(status));
  }

 private:
  template <class Action>
  int32_t Inside(Action action) const {
    if (event_.enter == nullptr) return action();
    if (const int32_t status = event_.enter(event_.context)) return status;
    const int32_t status = action();
    void* context;
    const int32_t left = event_.leave(&context);
    return status != 0 ? status : left;
  }

  AcceleratorEvent event_{};
};

}  // namespace

std::vector<std::pair<std::string, std::string>> OpenPlatform(const std::string& platform) {
  std::string text;
  Call(&AcceleratorFunctions::open, platform.c_str(), &text);
  std::istringstream lines(text);
  std::vector<std::pair<std::string, std::string>> devices;
  for (std::string name, kind; lines >> name && std::getline(lines >> std::ws, kind);) devices.emplace_back(name, kind);
  return devices;
}

std::vector<void*> Accelerator::Allocate(std::span<const size_t> sizes) const {
  std::vector<uint64_t> numbers(sizes.size());
  if (!sizes.empty()) Call(&AcceleratorFunctions::allocate, name.c_str(), sizes.data(), sizes.size(), numbers.data());
  std::vector<void*> memories;
  for (const uint64_t number : numbers) memories.push_back(Handle(number));
  return memories;
}

void* Accelerator::Borrow(void* address, size_t bytes) const {
  uint64_t number = 0;
  Call(&AcceleratorFunctions::borrow, name.c_str(), address, bytes, &number);
  return Handle(number);
}

void Accelerator::Release(void* memory) { Released::Get().Add(Number(memory)); }

void Accelerator::Upload(void* memory, const void* source, size_t bytes) {
  Call(&AcceleratorFunctions::upload, Number(memory), source, bytes);
}

void Accelerator::Download(void* memory, void* target, size_t bytes) {
  Call(&AcceleratorFunctions::download, Number(memory), target, bytes);
}

void Accelerator::Copy(void* target, void* source) { Call(&AcceleratorFunctions::copy, Number(target), Number(source)); }

void* Accelerator::Address(void* memory) {
  void* address = nullptr;
  Call(&AcceleratorFunctions::address, Number(memory), &address);
  return address;
}

void Accelerator::Run(uint64_t program, void* const* memories, size_t count) {
  Call(&AcceleratorFunctions::run, program, memories, count);
}

Readiness Accelerator::Start(Queue& queue, std::vector<CompletionPtr> inputs, Queue::Work work) {
  const auto mark = std::make_shared<Mark>();
  CompletionPtr told = queue.Do(true, std::move(inputs), [this, mark, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    mark->Set(name);
  });
  if (told == nullptr && mark->has_happened()) return {};
  std::vector<CompletionPtr> before;
  if (told != nullptr) before.push_back(told);
  CompletionPtr done = waiting_.Add(std::move(before), [mark] { mark->Wait(); });
  return {std::move(told), std::move(done)};
}

}  // namespace trivium::pjrt

// Null if no function may be called any more: memory is then kept until the process ends.
TRIVIUM_EXPORT void trivium_pjrt_set_accelerators(const trivium::pjrt::AcceleratorFunctions* given) {
  trivium::pjrt::functions.store(given);
}
