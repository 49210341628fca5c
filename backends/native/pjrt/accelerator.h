// Devices whose memory is not the host's, such as GPUs. Python drives them, by functions that it registers here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue.h"

namespace trivium::pjrt {

// Two structures that backends/plugin/accelerator_structures.py also declares.

// That a device has done what it was told before. Its functions are the driver's own, and return the driver's code, 0 for success: hosts may
// wait for it with the interpreter's lock held. They are called between `enter` and `leave`, if there are these. Without `wait`, it has
// happened.
struct AcceleratorEvent {
  int32_t (*enter)(void* context);
  int32_t (*leave)(void** context);
  int32_t (*wait)(void* event);
  int32_t (*destroy)(void* event);
  void* context;
  void* event;
};

// A device has a name, such as "cuda:0". Memory is a number, never 0, until it is released. Functions return an Error_Code; if it is not 0,
// the reason has been passed to `trivium_pjrt_fail(failure, ...)`.
struct AcceleratorFunctions {
  // Passes the names and models of a platform's usable devices, a line each, to `trivium_pjrt_write(sink, ...)`.
  int32_t (*open)(const char* platform, void* sink, void* failure);
  int32_t (*allocate)(const char* device, const size_t* sizes, size_t count, uint64_t* memories, void* failure);
  // Memory that belongs to somebody else, by its address on the device.
  int32_t (*borrow)(const char* device, void* address, size_t bytes, uint64_t* memory, void* failure);
  int32_t (*release)(const uint64_t* memories, size_t count, void* failure);
  // All bytes of a memory. The first may return before they are on the device; then the source may change. The second waits.
  int32_t (*upload)(uint64_t memory, const void* source, size_t bytes, void* failure);
  int32_t (*download)(uint64_t memory, void* target, size_t bytes, void* failure);
  // All bytes of a memory, to one of the same or another device. May return before they are there.
  int32_t (*copy)(uint64_t target, uint64_t source, void* failure);
  int32_t (*address)(uint64_t memory, void** address, void* failure);
  // Tells the devices to run a program, by the handle of its compilation, on the memories of arguments, device by device, and then of
  // results.
  int32_t (*run)(uint64_t program, void* const* memories, size_t count, void* failure);
  int32_t (*mark)(const char* device, AcceleratorEvent* event, void* failure);
};

// The names and models of a platform's usable devices. Throws if there are none, with the reason.
std::vector<std::pair<std::string, std::string>> OpenPlatform(const std::string& platform);

// When work is done for what its device is told later, and for everybody else. These differ if the device works on its own, in the order in
// which it is told.
struct Readiness {
  Readiness(CompletionPtr for_all = nullptr) : for_device(for_all), for_all(std::move(for_all)) {}
  Readiness(CompletionPtr for_device, CompletionPtr for_all) : for_device(std::move(for_device)), for_all(std::move(for_all)) {}

  CompletionPtr for_device, for_all;
};

// One device. Its memory is handled as `void*`, which is not an address. What needs Python is done in the thread that asks for it: any other
// could wait for the interpreter's lock while a host that holds it waits for that thread.
class Accelerator {
 public:
  explicit Accelerator(std::string name) : name(std::move(name)) {}

  std::vector<void*> Allocate(std::span<const size_t> sizes) const;
  void* Borrow(void* address, size_t bytes) const;
  // Later, before anything else is asked of the device.
  static void Release(void* memory);
  static void Upload(void* memory, const void* source, size_t bytes);
  static void Download(void* memory, void* target, size_t bytes);
  static void Copy(void* target, void* source);
  static void* Address(void* memory);
  static void Run(uint64_t program, void* const* memories, size_t count);

  // Does `work`, which tells the device something: here, or by `queue` after `inputs`, if there are any.
  Readiness Start(Queue& queue, std::vector<CompletionPtr> inputs, Queue::Work work);

  const std::string name;

 private:
  // Waits for the device, for one event after the other.
  Queue waiting_;
};

}  // namespace trivium::pjrt
